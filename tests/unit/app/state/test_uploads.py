"""Uploads: what is taken, what is refused in one line, and that no path gets in or out."""

import errno
import gzip
from pathlib import Path

import pytest

from app.answers.forecast.forecast import forecast
from app.answers.setup import Setup
from app.state.uploads import SMALL_MB, Folder, Uploads, take_model, take_scenario, take_trace
from twin.errors import InputError

TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2024-05-10 00:00:{second:02d}.000000,{400 + second},20\n" for second in range(30)
)
SCENARIO = (
    "schema_version: 1\nname: ours\nllm: llama-3.1-8b\ngpu: h100_sxm\n"
    "workload: {kind: closed_loop, concurrency: 4, num_requests: 8,"
    " prompt_tokens: 100, output_tokens: 10}\n"
)


@pytest.fixture
def folder() -> Folder:
    return Folder()


def test_a_trace_is_read_and_simulated(folder: Folder) -> None:
    taken = take_trace(folder, "mine.csv", TRACE.encode())
    assert taken.about == "30 requests"
    assert Path(taken.path).is_relative_to(folder.path)
    setup = Setup(
        "chat-h100", None, {}, {"workload.path": taken.path}, {"workload.path": taken.digest}
    )
    assert forecast(setup).summary["requests"] == 30


def test_a_scenario_is_kept_as_data(folder: Folder) -> None:
    taken = take_scenario(folder, "ours.yaml", SCENARIO.encode())
    assert taken.data is not None
    assert taken.path == ""
    assert forecast(Setup("", taken.data)).summary["requests"] == 8


@pytest.mark.parametrize(
    "bad",
    [
        "workload: {kind: trace, path: /etc/passwd}",
        "workload: {kind: trace, path: trace.csv}",
        "profile: mine.npz",
        "llm: ./config.json",
        "policy: other.yaml",
        "policy: other.yml",
        "policy: other",
    ],
)
def test_a_scenario_may_name_no_file(folder: Folder, bad: str) -> None:
    key = bad.split(":")[0]
    lines = [line for line in SCENARIO.splitlines() if not line.startswith(f"{key}:")]
    if key == "workload":
        lines = lines[:4]
    with pytest.raises(InputError, match="names a file"):
        take_scenario(folder, "ours.yaml", "\n".join([*lines, bad]).encode())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"   \n", "is empty"),
        (gzip.compress(b"0" * 1000, mtime=0), "gzip"),
        (b"PK\x03\x04rest", "ZIP"),
        (b"<html><body>no</body></html>", "web page"),
        (b"\xff\xfe\x00\x01", "mine.csv"),
        (b"a,b\n1,2\n", "format is not known"),
    ],
)
def test_bad_traces_are_refused_and_leave_nothing(
    folder: Folder, content: bytes, words: str
) -> None:
    with pytest.raises(InputError, match=words) as told:
        take_trace(folder, "mine.csv", content)
    assert str(folder.path) not in str(told.value)
    assert list(folder.path.iterdir()) == []


def test_a_file_name_of_a_visitor_never_names_a_place(folder: Folder) -> None:
    taken = take_trace(folder, "../../etc/../x\x00y.csv", TRACE.encode())
    assert Path(taken.path).name == "trace.csv"
    assert Path(taken.path).is_relative_to(folder.path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[1, 2]", "config.json"),
        (b"not json", "is not JSON"),
        (b"{}", "config.json"),
        (b"x" * 2_000_000, "MB"),
    ],
)
def test_bad_models_are_refused(folder: Folder, content: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        take_model(folder, "config.json", content)
    assert SMALL_MB == 1
    assert list(folder.path.iterdir()) == []


def test_a_folder_goes_with_its_visitor() -> None:
    folder = Folder()
    path = folder.path
    take_trace(folder, "mine.csv", TRACE.encode())
    assert path.exists()
    assert path.stat().st_mode & 0o077 == 0
    del folder
    assert not path.exists()


@pytest.mark.parametrize("deep", [b"[" * 200_000, b'{"a":' * 100_000])
def test_a_model_nested_too_deeply_is_refused(folder: Folder, deep: bytes) -> None:
    with pytest.raises(InputError, match="is not JSON"):
        take_model(folder, "config.json", deep)
    assert not list(folder.path.iterdir())


def test_a_scenario_that_takes_long_to_read_is_refused_at_once(folder: Folder) -> None:
    with pytest.raises(InputError, match="at most 100 kB"):
        take_scenario(folder, "big.yaml", b"a: 1\n" * 30_000)


def test_a_full_disk_is_one_line(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"mine\.csv: cannot be kept: No space left"):
        take_trace(folder, "mine.csv", TRACE.encode())
    assert not list(folder.path.iterdir())


def test_a_replaced_upload_goes_from_the_disk() -> None:
    uploads = Uploads()
    for name in ("one.csv", "two.csv"):
        uploads.put("trace", take_trace(uploads.folder, name, TRACE.encode()))
        assert len(list(uploads.folder.path.iterdir())) == 1
    uploads.put("trace", None)
    assert not list(uploads.folder.path.iterdir())


def test_one_request_is_not_requests(folder: Folder) -> None:
    one = "".join(TRACE.splitlines(keepends=True)[:2])
    assert take_trace(folder, "one.csv", one.encode()).about == "1 request"


def test_levels_that_are_numbers_and_text_make_one_digest(folder: Folder) -> None:
    mixed = SCENARIO.replace("concurrency: 4, ", "arrivals: {kind: poisson, rate: 5}, ")
    mixed = mixed.replace("closed_loop", "synthetic").replace(
        "output_tokens: 10", "output_tokens: 10, priorities: {0: 0.5, '1': 0.5}"
    )
    setup = Setup("", take_scenario(folder, "ours.yaml", mixed.encode()).data)
    assert setup.digest()
    assert setup.file()[0].workload.priorities == {0: 0.5, 1: 0.5}  # type: ignore[union-attr]
