"""Replaying recordings: what is compared, and what a damaged file answers."""

import copy
import gzip
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from twin.conformance import render, replay_file
from twin.conformance.documents import read_document
from twin.errors import InputError

GOLDEN = Path(__file__).parents[2] / "golden"
SYNC = GOLDEN / "vllm_sync" / "15_identical_prompts_full_hit.json.gz"
ASYNC = GOLDEN / "vllm_async" / "a16_finish_while_preempted_fcfs.json.gz"

Edit = Callable[[dict[str, Any]], Any]


def document(path: Path, steps: int) -> dict[str, Any]:
    """The first steps of a recording."""
    value: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    value["steps"] = value["steps"][:steps]
    return value


SYNC_DOCUMENT = document(SYNC, 37)
ASYNC_DOCUMENT = json.loads(gzip.decompress(ASYNC.read_bytes()))


def replay(tmp_path: Path, original: dict[str, Any], edit: Edit) -> Any:
    value = copy.deepcopy(original)
    edit(value)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(value))
    return replay_file(path)


def shown(report: Any) -> str:
    out = StringIO()
    render(report, Console(file=out, width=100))
    return out.getvalue()


def test_plain_and_gzipped_files_whatever_their_name(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a.json", tmp_path / "b.json"
    plain.write_bytes(gzip.decompress(SYNC.read_bytes()))
    packed.write_bytes(SYNC.read_bytes())
    for path in (plain, packed, SYNC):
        report = replay_file(path)
        assert report.line == f"{path}: 37 of 37 steps identical"
        assert shown(report) == report.line + "\n"


def changed(value: Any) -> Any:
    """Something else of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, dict):
        return {key: changed(item) for key, item in value.items()} or {"x": [1]}
    return value[:-1] if value else None


SYNC_FIELDS = sorted(SYNC_DOCUMENT["steps"][0].keys() - {"added"})


@pytest.mark.parametrize("field", SYNC_FIELDS)
def test_every_field_of_a_synchronous_step_is_compared(tmp_path: Path, field: str) -> None:
    steps = SYNC_DOCUMENT["steps"]
    index = next((i for i, step in enumerate(steps) if step[field]), 0)
    other = changed(steps[index][field])

    def edit(value: dict[str, Any]) -> None:
        value["steps"][index][field] = ["r000"] if other is None else other

    report = replay(tmp_path, SYNC_DOCUMENT, edit)
    assert report.identical == index
    assert report.first_difference.step == index
    assert list(report.first_difference.expected) == [field]
    assert report.first_difference.got[field] == steps[index][field]


ASYNC_FIELDS = sorted(ASYNC_DOCUMENT["steps"][0].keys() - {"added", "updates_after"})


@pytest.mark.parametrize("field", ASYNC_FIELDS)
def test_every_field_of_an_asynchronous_step_is_compared(tmp_path: Path, field: str) -> None:
    steps = ASYNC_DOCUMENT["steps"]
    index = next((i for i, step in enumerate(steps) if i and step[field]), 1)
    if field == "idle_before":
        index = 1  # at step 0 the engine is idle, and there is nothing else to begin with
    other = changed(steps[index][field])

    def edit(value: dict[str, Any]) -> None:
        value["steps"][index][field] = ["r000"] if other is None else other

    report = replay(tmp_path, ASYNC_DOCUMENT, edit)
    assert report.first_difference.step == index
    differing = list(report.first_difference.expected)
    # When arrivals are seen depends on whether the engine was idle, so more may differ then.
    assert field in differing if field == "idle_before" else differing == [field]


UPDATE_FIELDS = sorted(
    next(s for s in ASYNC_DOCUMENT["steps"] if s["updates_after"])["updates_after"][0]
)


@pytest.mark.parametrize("field", UPDATE_FIELDS)
def test_every_field_of_an_update_is_compared(tmp_path: Path, field: str) -> None:
    steps = ASYNC_DOCUMENT["steps"]
    index = next(i for i, s in enumerate(steps) if any(u[field] for u in s["updates_after"]))

    def edit(value: dict[str, Any]) -> None:
        update = next(u for u in value["steps"][index]["updates_after"] if u[field])
        update[field] = changed(update[field])

    report = replay(tmp_path, ASYNC_DOCUMENT, edit)
    assert report.first_difference.step == index
    assert list(report.first_difference.expected) == ["updates_after"]


def test_engine_iterations_are_compared(tmp_path: Path) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["engine_iterations"][5][2] = not value["engine_iterations"][5][2]

    report = replay(tmp_path, ASYNC_DOCUMENT, edit)
    assert list(report.first_difference.expected) == ["engine_iterations"]


def test_a_difference_is_shown_side_by_side(tmp_path: Path) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["steps"][3]["free_blocks_after_schedule"] = 12345

    report = replay(tmp_path, SYNC_DOCUMENT, edit)
    text = shown(report)
    assert "3 of 37 steps identical" in text
    assert "first difference: step 3" in text
    assert "12345" in text
    assert "recorded (vLLM 0.33.0)" in text


def test_ids_with_brackets_are_shown_as_they_are(tmp_path: Path) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["steps"][0]["sampled"] = ["[/bold]", "x" * 900]

    assert "[/bold]" in shown(replay(tmp_path, SYNC_DOCUMENT, edit))


def test_a_recording_that_ends_early_says_so(tmp_path: Path) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["steps"] = value["steps"][:20]
        rows = value["engine_iterations"]
        value["engine_iterations"] = rows[: [row[0] for row in rows].index(20)]

    report = replay(tmp_path, ASYNC_DOCUMENT, edit)
    assert report.first_difference.step == 19
    assert report.first_difference.got == {"engine": "has requests left"}


def test_an_engine_with_nothing_left_to_do_says_so(tmp_path: Path) -> None:
    def edit(value: dict[str, Any]) -> None:
        for step in value["steps"]:
            step["added"] = []

    report = replay(tmp_path, ASYNC_DOCUMENT, edit)
    assert report.first_difference.got == {"engine": "has nothing left to do"}
    assert report.identical == 0


def delete(*keys: Any) -> Edit:
    def edit(value: Any) -> None:
        for key in keys[:-1]:
            value = value[key]
        del value[keys[-1]]

    return edit


def put(*keys_and_value: Any) -> Edit:
    *keys, last, new = keys_and_value

    def edit(value: Any) -> None:
        for key in keys:
            value = value[key]
        value[last] = new

    return edit


BAD_EDITS: list[tuple[Edit, str]] = [
    (delete("schema"), "has no key 'schema'"),
    (put("schema", 3), "'schema' is 3"),
    (put("schema", "1"), "'schema' is '1'"),
    (delete("vllm_version"), "does not say which engine"),
    (put("engine", "tgi"), "unknown engine 'tgi'; choose one of "),
    (put("vllm_version", 33), "'vllm_version' is 33"),
    (delete("config"), "has no key 'config'"),
    (delete("config", "block_size"), "'config': has no key 'block_size'"),
    (put("config", "block_size", 0), "'block_size' is 0"),
    (put("config", "block_size", True), "'block_size' is True"),
    (put("config", "policy", "fcfz"), "did you mean 'fcfs'"),
    (put("config", "watermark", 1.5), "watermark is 1.5"),
    (put("config", "max_model_len", 1), "prompt tokens, more than max_model_len 1"),
    (put("config", "num_gpu_blocks", 10**12), "'num_gpu_blocks' is 1000000000000"),
    (put("effective", "num_lookahead_tokens", 3), "only recordings with 0"),
    (put("effective", "async_scheduling", True), "only recordings with False"),
    (put("requests", "none"), "'requests' is 'none'"),
    (delete("requests", 0, "max_tokens"), "'requests'[0]: has no key 'max_tokens'"),
    (put("requests", 1, "prompt_token_ids", []), "'requests'[1]: 'prompt_token_ids' is []"),
    (put("requests", 1, "arrival_time", None), "'arrival_time' is None"),
    (put("requests", 1, "stop_at", 0), "'stop_at' is 0"),
    (put("requests", 1, "id", "r000"), "request id 'r000' comes twice"),
    (put("steps", []), "'steps' is empty"),
    (put("steps", 4, 7), "'steps' is ["),
    (delete("steps", 4, "scheduled"), "'steps'[4]: has no key 'scheduled'"),
    (put("steps", 4, "scheduled", [["r000"]]), "'steps'[4]: 'scheduled' is"),
    (put("steps", 4, "added", ["nobody"]), "'added' names 'nobody' which is not among"),
    (put("steps", 4, "added", ["r000"]), "'added' names 'r000' twice"),
    (put("steps", 4, "prefix_cache", {"hits": "x"}), "'prefix_cache' is"),
]


@pytest.mark.parametrize(("edit", "message"), BAD_EDITS, ids=[text for _, text in BAD_EDITS])
def test_a_damaged_recording_is_one_line(tmp_path: Path, edit: Edit, message: str) -> None:
    with pytest.raises(InputError) as raised:
        replay(tmp_path, SYNC_DOCUMENT, edit)
    text = str(raised.value)
    assert message in text
    assert "edited.json" in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (delete("engine_iterations"), "has no key 'engine_iterations'"),
        (put("engine_iterations", []), "schedules 0 steps"),
        (put("engine_iterations", [[None, 0, True]]), "schedules 0 steps"),
        (delete("steps", 2, "updates_after", 0, "of"), "'updates_after': has no key 'of'"),
        (put("steps", 2, "updates_after", [1]), "'updates_after' is [1]"),
        (put("steps", 2, "running_state", [["r000", 1]]), "'running_state' is"),
    ],
)
def test_a_damaged_asynchronous_recording(tmp_path: Path, edit: Edit, message: str) -> None:
    with pytest.raises(InputError) as raised:
        replay(tmp_path, ASYNC_DOCUMENT, edit)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b" \n ", "is empty"),
        (b"{", "is not valid JSON at line 1"),
        (b"[1, 2]", "holds a JSON list"),
        (b'{"a": NaN}', "NaN is not a number"),
        (b'{"a": "\xff"}', "is not valid JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "is not valid JSON"),
        (SYNC.read_bytes()[:1000], "damaged or cut short"),
        (b"\x1f\x8bnot gzip at all", "damaged or cut short"),
        (SYNC.read_bytes()[:-8] + b"\x00" * 8, "damaged or cut short"),
    ],
    ids=range(11),
)
def test_files_that_are_no_recording(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.json.gz"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        replay_file(path)
    assert message in str(raised.value)
    assert "broken.json.gz" in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path):
        with pytest.raises(InputError, match="cannot be read"):
            replay_file(path)


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    text = json.dumps({"key": "x" * 1000}).encode()
    for content in (text, gzip.compress(text)):
        path = tmp_path / "large.json"
        path.write_bytes(content)
        assert read_document(path, max_bytes=len(text))["key"]
        with pytest.raises(InputError, match="holds more than"):
            read_document(path, max_bytes=len(text) - 1)


def test_an_engine_known_by_its_version_key(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"schema_version": 1, "tgi_version": "0.5"}))
    with pytest.raises(InputError, match="unknown engine 'tgi'; choose one of "):
        replay_file(path)
