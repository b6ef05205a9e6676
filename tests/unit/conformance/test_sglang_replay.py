"""Replaying recordings of SGLang: what is compared, and what a damaged file answers."""

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twin.conformance import replay_file
from twin.conformance.sglang.content import EOS_TOKEN, TokenContent
from twin.conformance.vllm.content import SAMPLED_TOKEN, KeyTable
from twin.errors import InputError

GOLDEN = Path(__file__).parents[2] / "golden" / "sglang"

Edit = Callable[[dict[str, Any]], Any]


def document(name: str) -> dict[str, Any]:
    path = next(GOLDEN.glob(f"{name}*"))
    value: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return value


OVERLAP = document("22_identical")
MIXED = document("15_mixed")
STOPS = document("28_ample_stops")


def replay(tmp_path: Path, original: dict[str, Any], edit: Edit) -> Any:
    value = copy.deepcopy(original)
    edit(value)
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(value))
    return replay_file(path)


def changed(value: Any) -> Any:
    """Something else of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, dict):
        return {key: changed(item) for key, item in value.items()} or {"x": 1}
    if isinstance(value, list):
        return [changed(item) for item in value] or None
    return "x"


FIELDS = sorted({key for step in MIXED["steps"] for key in step} - {"added"})


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_of_a_turn_is_compared(tmp_path: Path, field: str) -> None:
    steps = MIXED["steps"]
    index = next((i for i, step in enumerate(steps) if step.get(field)), 0)
    other = changed(steps[index][field])
    if other is None:  # an empty list in every turn
        other = {"retracted": [["r000", 1, 1]], "aborted": ["r000"]}[field]
    report = replay(tmp_path, MIXED, lambda value: value["steps"][index].update({field: other}))
    assert (report.identical, report.first_difference.step) == (index, index)
    assert report.first_difference.expected == {field: other}
    assert report.first_difference.got == {field: steps[index][field]}


def test_a_field_on_one_side_only_differs(tmp_path: Path) -> None:
    report = replay(tmp_path, OVERLAP, lambda value: value["steps"][2].update(idle=True))
    assert report.first_difference.got == {"idle": False}
    report = replay(tmp_path, OVERLAP, lambda value: value["steps"][2].pop("decode"))
    assert report.first_difference.expected == {"decode": "(absent)"}


def test_a_recorder_may_write_what_did_not_happen(tmp_path: Path) -> None:
    def edit(value: dict[str, Any]) -> None:
        for step in value["steps"]:
            step.setdefault("idle", False)
            step["preempted"] = []

    assert replay(tmp_path, MIXED, edit).passed


def test_without_a_given_context_the_longest_request_tells_it(tmp_path: Path) -> None:
    assert replay(tmp_path, OVERLAP, put("config", "context_length", None)).passed


def test_what_became_of_the_requests_is_compared(tmp_path: Path) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["outputs"]["r003"][4] += 1

    report = replay(tmp_path, OVERLAP, edit)
    assert report.first_difference.step == 37
    assert list(report.first_difference.expected) == ["outputs"]


def test_stop_tokens_count_samples_and_not_outputs(tmp_path: Path) -> None:
    # r029's first sample is lost at the end of a chunk; the second is its first output.
    ends = [end for step in STOPS["steps"] for end in step["finished"] if end[0] == "r029"]
    assert ends == [["r029", "FINISH_MATCHED_TOKEN", 1]]
    assert replay(tmp_path, STOPS, lambda value: None).passed

    def two_later(value: dict[str, Any]) -> None:
        next(row for row in value["requests"] if row["id"] == "r000")["stop_at"] += 2

    report = replay(tmp_path, STOPS, two_later)
    assert not report.passed
    assert "finished" in report.first_difference.expected


def test_recorded_content_holds_its_stop_token() -> None:
    table = KeyTable()
    plain = TokenContent([1, 2, 3], None, table)
    stopped = TokenContent([1, 2, 3], 2, table)
    same = TokenContent([1, 2, 3, SAMPLED_TOKEN, EOS_TOKEN], None, table)
    assert plain.block_keys(1, 4) == stopped.block_keys(1, 4)
    assert plain.block_keys(1, 5)[:4] == stopped.block_keys(1, 5)[:4]
    assert plain.block_keys(1, 5)[4] != stopped.block_keys(1, 5)[4]
    assert stopped.block_keys(1, 5) == same.block_keys(1, 5)
    assert len(plain.block_keys(2, 5)) == 2


def put(*path: Any) -> Edit:
    *keys, last, new = path

    def edit(value: Any) -> None:
        for key in keys:
            value = value[key]
        value[last] = new

    return edit


def delete(*path: Any) -> Edit:
    *keys, last = path

    def edit(value: Any) -> None:
        for key in keys:
            value = value[key]
        del value[last]

    return edit


BAD_EDITS: list[tuple[Edit, str]] = [
    (put("schema", 2), "'schema' is 2"),
    (delete("outputs"), "has no key 'outputs'"),
    (delete("config", "context_length"), "'config': has no key 'context_length'"),
    (put("config", "schedule_policy", "lpn"), "did you mean 'lpm'?"),
    (put("config", "env", {"SGLANG_X": "1"}), "the environment variable 'SGLANG_X'"),
    (put("config", "env", {"SGLANG_RETRACT_DECODE_STEPS": "a"}), "give a whole number"),
    (put("effective", "page_size", 0), "'page_size' is 0"),
    (put("effective", "tree_cache", "ChunkCache"), "'tree_cache' is 'ChunkCache'"),
    (put("effective", "ratio_init", 0.5), "'ratio_init' is 0.5"),
    (put("requests", 1, "prompt_token_ids", []), "'requests'[1]: 'prompt_token_ids' is []"),
    (put("requests", 1, "id", "r000"), "request id 'r000' comes twice"),
    (put("requests", 1, "stop_at", 0), "'stop_at' is 0"),
    (put("steps", []), "'steps' is empty"),
    (put("steps", 3, "added", ["r999"]), "'added' names 'r999' which is not among"),
    (put("steps", 4, "added", ["r001"]), "'added' names 'r001' twice"),
    (delete("steps", 4, "before"), "'steps'[4]: has no key 'before'"),
]


@pytest.mark.parametrize(("edit", "message"), BAD_EDITS, ids=[text for _, text in BAD_EDITS])
def test_a_damaged_recording_is_one_line(tmp_path: Path, edit: Edit, message: str) -> None:
    with pytest.raises(InputError) as raised:
        replay(tmp_path, OVERLAP, edit)
    text = str(raised.value)
    assert message in text
    assert "edited.json" in text
    assert "\n" not in text


def test_environment_variables_set_their_limits(tmp_path: Path) -> None:
    def edit(value: dict[str, Any]) -> None:
        value["config"]["env"] = {
            "SGLANG_INIT_NEW_TOKEN_RATIO": "0.7",
            "SGLANG_RETRACT_DECODE_STEPS": "20",
            "SGLANG_DISABLE_CONSECUTIVE_PREFILL_OVERLAP": "1",
        }

    assert replay(tmp_path, OVERLAP, edit).passed

    def faster(value: dict[str, Any]) -> None:
        value["config"]["env"] = {"SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS": "300"}

    report = replay(tmp_path, OVERLAP, faster)
    assert report.first_difference.step == 1
    assert set(report.first_difference.expected) == {"after", "end"}
