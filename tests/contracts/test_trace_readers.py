"""What holds for every trace reader in the table."""

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest

from twin.errors import InputError
from twin.workload.readers import READERS, read_trace, recognise

SAMPLES: dict[str, str] = {
    "azure_llm_csv": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        "2023-11-16 18:15:46.6805900,374,44\r\n"
        "2023-11-16 18:15:50.9951690,396,109\r\n"
        "2023-11-16 18:15:51.2224670,879,55\r\n"
    ),
    "mooncake_jsonl": "\n".join(
        json.dumps({"timestamp": t, "input_length": p, "output_length": o, "hash_ids": h})
        for t, p, o, h in ((0, 600, 5, [0, 1]), (3000, 512, 7, [0]), (3000, 1025, 9, [0, 2, 3]))
    ),
    "sharegpt_json": json.dumps(
        [{"prompt_len": p, "output_len": o, "timestamp": t} for p, o, t in ((3, 4, 1.5),) * 3]
    ),
    "vllm_bench_json": json.dumps(
        {
            "date": "20250101-000000",
            "completed": 3,
            "request_throughput": 1.5,
            "input_lens": [10, 20, 30],
            "output_lens": [1, 2, 3],
            "start_times": [100.0, 100.5, 102.0],
            "errors": ["", "", ""],
        }
    ),
    "vllm_run_jsonl": "\n".join(
        json.dumps({"arrival_s": a, "prompt_tokens": 20, "output_tokens": 6}) for a in (0.5, 1, 2)
    ),
}

DATED = set(READERS) - {"azure_llm_csv"}
"""Formats whose rows are JSON: a length there is written as a number."""

formats = pytest.mark.parametrize("name", READERS)


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "trace"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_reader_has_a_sample() -> None:
    assert SAMPLES.keys() == READERS.keys()


@formats
def test_recognises_its_own_and_no_other(name: str, tmp_path: Path) -> None:
    knowing = [other for other, reader in READERS.items() if reader.recognises(SAMPLES[name])]
    assert knowing == [name]
    assert recognise(write(tmp_path, SAMPLES[name])) == name


@formats
def test_reads_what_stands_there(name: str, tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path, SAMPLES[name]))
    assert len(trace) == 3
    assert trace.format == name
    assert trace.finish == READERS[name].finish
    assert trace.timed
    assert trace.arrival_s[0] == 0
    assert (trace.arrival_s[1:] >= trace.arrival_s[:-1]).all()
    assert (trace.prompt_tokens > 0).all()
    assert (trace.output_tokens > 0).all()
    assert len(set(trace.rows.tolist())) == 3


@formats
@pytest.mark.parametrize("dressing", ["gzip", "bom", "crlf", "blank lines"])
def test_dressing_changes_nothing(name: str, dressing: str, tmp_path: Path) -> None:
    plain = SAMPLES[name].replace("\r\n", "\n")
    dressed = {
        "gzip": gzip.compress(plain.encode()),
        "bom": b"\xef\xbb\xbf" + plain.encode(),
        "crlf": plain.replace("\n", "\r\n").encode(),
        "blank lines": ("\n\n" + plain.replace("\n", "\n\n") + "\n\n").encode(),
    }[dressing]
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    expected = read_trace(write(tmp_path / "a", plain))
    found = read_trace(write(tmp_path / "b", dressed))
    assert found.format == name
    assert found.arrival_s.tolist() == expected.arrival_s.tolist()
    assert found.prompt_tokens.tolist() == expected.prompt_tokens.tolist()
    assert found.output_tokens.tolist() == expected.output_tokens.tolist()


@formats
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   \n\n ",
        b"\0\1\2\3" * 100,
        b"\xff\xfet\0e\0x\0t\0",
        b"\x89PNG\r\n\x1a\n\xff\xfe\xfd",
        b"caf\xe9,1,2\n3,4,5\n",
        b"PK\x03\x04 zipped",
        gzip.compress(b"[1, 2, 3]" * 1000, mtime=0)[:-20],
        b"\x1f\x8b damaged",
        b"{",
        b"[",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b"null",
        b"[null]",
        b"[[]]",
        b'{"input_lens": 3}',
        b'"text"',
        b"1" * 5000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b"a,b,c\n1,2,3\n",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_bad_input_is_one_line(name: str, content: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, content)
    for format_name in (name, None):
        with pytest.raises(InputError) as caught:
            read_trace(path, format_name)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 600 + len(str(path))


@formats
def test_a_sample_cut_short_is_an_input_error_or_shorter(name: str, tmp_path: Path) -> None:
    for cut in range(0, len(SAMPLES[name]), 7):
        with suppress(InputError):
            assert len(read_trace(write(tmp_path, SAMPLES[name][:cut]), name)) <= 3


@formats
@pytest.mark.parametrize("path", ["missing", ".", "nul\0byte", "x" * 5000])
def test_paths_that_are_no_files(name: str, path: str, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_trace(tmp_path / path, name)


@formats
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("0", "not positive"),
        ("-5", "not positive"),
        ("1.5", "not whole"),
        ("1e30", "too large"),
        ("NaN", "not a number"),
        ("Infinity", "not a number"),
        ('"many"', "not a number"),
    ],
)
def test_bad_lengths_name_row_and_remedy(
    name: str, value: str, problem: str, tmp_path: Path
) -> None:
    old, new = {
        "azure_llm_csv": (",396,", f",{value},"),
        "mooncake_jsonl": ('"output_length": 7', f'"output_length": {value}'),
        "sharegpt_json": ('"output_len": 4', f'"output_len": {value}'),
        "vllm_bench_json": ("[1, 2, 3]", f"[1, {value}, 3]"),
        "vllm_run_jsonl": ('"output_tokens": 6', f'"output_tokens": {value}'),
    }[name]
    assert old in SAMPLES[name]
    with pytest.raises(InputError) as caught:
        read_trace(write(tmp_path, SAMPLES[name].replace(old, new)), name)
    assert problem in str(caught.value)
    assert "row " in str(caught.value)
    assert "whole number of tokens" in str(caught.value)


@pytest.mark.parametrize("name", sorted(DATED))
@pytest.mark.parametrize("value", ["NaN", "-1", "1e300", '"noon"', "true", "null", "[]"])
def test_bad_times(name: str, value: str, tmp_path: Path) -> None:
    old, new = {
        "mooncake_jsonl": ('"timestamp": 3000', f'"timestamp": {value}'),
        "sharegpt_json": ('"timestamp": 1.5', f'"timestamp": {value}'),
        "vllm_bench_json": ("100.5", value),
        "vllm_run_jsonl": ('"arrival_s": 1,', f'"arrival_s": {value},'),
    }[name]
    assert old in SAMPLES[name]
    text = SAMPLES[name].replace(old, new, 1)
    with pytest.raises(InputError) as caught:
        read_trace(write(tmp_path, text), name)
    assert "time" in str(caught.value) or "span" in str(caught.value)


def test_unknown_format_suggests_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'mooncake_jsonl'"):
        read_trace(write(tmp_path, "{}"), "mooncake_json")
