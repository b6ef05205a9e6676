import gzip
import os
from pathlib import Path

import pytest

from twin.errors import InputError
from twin.workload.readers import bounded, read_trace
from twin.workload.readers.bounded import json_document, text_lines

HEADER = b"TIMESTAMP,ContextTokens,GeneratedTokens\n"


def test_a_line_at_and_past_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_LINE_BYTES", 2**20)
    path = tmp_path / "trace"
    path.write_bytes(b"a" * (2**20 - 1) + b"\nb\n")
    assert [number for number, _ in text_lines(path)] == [1, 2]
    path.write_bytes(b"a" * 2**20 + b"\nb\n")
    with pytest.raises(InputError, match=r"row 1: the line is longer than 1 MiB"):
        list(text_lines(path))


def test_a_huge_line_is_refused_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with path.open("wb") as file:
        file.write(b'{"input_length": "')
        file.truncate(200 * 2**20)  # sparse: NULs read as text of one line
    for name in ("azure_llm_csv", "mooncake_jsonl", "vllm_run_jsonl"):
        with pytest.raises(InputError, match="longer than 16 MiB"):
            read_trace(path, name)
    for name in ("sharegpt_json", "vllm_bench_json"):
        with pytest.raises(InputError, match="larger than 128 MiB"):
            read_trace(path, name)


def test_gzip_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_JSON_BYTES", 1000)
    path = tmp_path / "trace"
    path.write_bytes(gzip.compress(b"[" + b" " * 998 + b"]"))
    assert json_document(path) == []
    path.write_bytes(gzip.compress(b"[" + b" " * 999 + b"]"))
    with pytest.raises(InputError, match="larger than"):
        json_document(path)


def test_rows_at_and_past_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "MAX_LINES", 5)
    path = tmp_path / "trace"
    path.write_text("x\n" * 5)
    assert len(list(text_lines(path))) == 5
    path.write_text("x\n" * 6)
    with pytest.raises(InputError, match="rows"):
        list(text_lines(path))


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        read_trace(path)


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder; give the path of a trace file"):
        read_trace(tmp_path)


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace"
    path.write_bytes(HEADER)

    def deny(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
        read_trace(path)


def test_truncated_gzip_of_lines(tmp_path: Path) -> None:
    rows = b"".join(b"2023-11-16 18:15:%02d.%07d,374,44\n" % (i % 60, i * 7919) for i in range(60))
    whole = gzip.compress(HEADER + rows)
    path = tmp_path / "trace.csv.gz"
    path.write_bytes(whole)
    assert len(read_trace(path)) == 60
    for cut in (len(whole) - 1, len(whole) - 9, len(whole) // 2):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match="damaged gzip"):
            read_trace(path, "azure_llm_csv")


def test_nul_and_latin1_in_a_later_row(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_bytes(HEADER + b"2023-11-16 18:15:00,1,1\n" * 5000 + b"\0\0\0\n")
    with pytest.raises(InputError, match=r"row 5002: is not text"):
        read_trace(path)
    path.write_bytes(HEADER + b"2023-11-16 18:15:00,1,1\n" * 5000 + b"\xe9\n")
    with pytest.raises(InputError, match=r"row 5002: is not UTF-8"):
        read_trace(path)
