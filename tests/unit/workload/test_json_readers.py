import json
from pathlib import Path
from typing import Any

import pytest

from twin.errors import InputError
from twin.request import SegmentContent
from twin.workload.readers import read_trace
from twin.workload.trace import Trace


def read(folder: Path, name: str, value: Any, *, sort: bool = False) -> Trace:
    """Write a list as JSON lines, for formats of lines, else as one document."""
    path = folder / "trace.json"
    lines = name.endswith("_jsonl")
    path.write_text("\n".join(map(json.dumps, value)) if lines else json.dumps(value))
    return read_trace(path, name, sort=sort)


def contents(trace: Trace) -> list[SegmentContent]:
    assert trace.segments is not None
    return trace.segments.contents(trace.prompt_tokens, trace.output_tokens)


def shared_blocks(first: SegmentContent, second: SegmentContent, size: int, tokens: int) -> int:
    """Return how many leading blocks of `second`'s first tokens `first` has too."""
    have, count = set(first.block_keys(size, 10**5)), 0
    for key in second.block_keys(size, tokens):
        if key not in have:
            break
        count += 1
    return count


def mooncake(time_ms: float, prompt: int, hashes: Any, output: int = 100) -> dict[str, Any]:
    return {
        "timestamp": time_ms,
        "input_length": prompt,
        "output_length": output,
        "hash_ids": hashes,
    }


class TestMooncake:
    def test_times_are_milliseconds(self, tmp_path: Path) -> None:
        trace = read(tmp_path, "mooncake_jsonl", [mooncake(27, 5, [1]), mooncake(3027, 6, [2])])
        assert trace.arrival_s.tolist() == [0, 3]

    def test_partial_last_block_is_shared_by_equal_prompts_only(self, tmp_path: Path) -> None:
        rows = [
            mooncake(0, 700, [0, 1]),
            mooncake(0, 700, [0, 1]),
            mooncake(0, 900, [0, 2]),
            mooncake(0, 700, [3, 1]),
        ]
        first, same, other, elsewhere = contents(read(tmp_path, "mooncake_jsonl", rows))
        assert shared_blocks(first, same, 16, 800) == 700 // 16
        assert shared_blocks(first, other, 16, 900) == 512 // 16
        assert shared_blocks(first, elsewhere, 16, 700) == 0

    def test_answers_are_never_shared(self, tmp_path: Path) -> None:
        first, same = contents(
            read(tmp_path, "mooncake_jsonl", [mooncake(0, 512, [7]), mooncake(0, 512, [7])])
        )
        assert shared_blocks(first, same, 16, 612) == 32

    def test_ids_that_are_not_chained_come_out_chained(self, tmp_path: Path) -> None:
        first, second = contents(
            read(tmp_path, "mooncake_jsonl", [mooncake(0, 1024, [1, 5]), mooncake(0, 1024, [2, 5])])
        )
        assert first.ids[1] != second.ids[1]

    def test_without_hashes(self, tmp_path: Path) -> None:
        row = {"timestamp": 0, "input_length": 9, "output_length": 1}
        assert read(tmp_path, "mooncake_jsonl", [row, row]).segments is None

    @pytest.mark.parametrize(
        ("row", "problem"),
        [
            (mooncake(0, 513, [1]), "row 2: 1 hash_ids for a prompt of 513 tokens"),
            (mooncake(0, 512, [1, 2]), "row 2: 2 hash_ids"),
            (mooncake(0, 512, ["a"]), "row 2: hash_ids is not a list of integers"),
            (mooncake(0, 512, [[1]]), "row 2: hash_ids is not a list of integers"),
            (mooncake(0, 512, 5), "row 2: hash_ids is not a list of integers"),
            (mooncake(0, 512, None), "row 2: hash_ids is missing"),
            ({"timestamp": 0, "input_length": 3}, "row 2: 'output_length' is missing; the row has"),
            (3, "row 2: the line is not a JSON object"),
        ],
    )
    def test_bad_rows(self, row: Any, problem: str, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            read(tmp_path, "mooncake_jsonl", [mooncake(0, 512, [1]), row])
        assert problem in str(caught.value)

    def test_disorder(self, tmp_path: Path) -> None:
        rows = [mooncake(5, 600, [1, 2]), mooncake(0, 5, [3])]
        with pytest.raises(InputError, match=r"row 2: arrives 0\.005 s before"):
            read(tmp_path, "mooncake_jsonl", rows)
        trace = read(tmp_path, "mooncake_jsonl", rows, sort=True)
        assert trace.prompt_tokens.tolist() == [5, 600]
        assert [len(content.ids) for content in contents(trace)] == [2, 3]


def run(arrival_s: float, prompt: int, **more: Any) -> dict[str, Any]:
    return {"arrival_s": arrival_s, "prompt_tokens": prompt, "output_tokens": 50, **more}


class TestVllmRun:
    def test_tail_beyond_full_blocks_is_its_own(self, tmp_path: Path) -> None:
        rows = [run(i, 40, block_tokens=16, prompt_block_ids=[1, 2]) for i in range(2)]
        first, second = contents(read(tmp_path, "vllm_run_jsonl", rows))
        assert shared_blocks(first, second, 16, 48) == 2
        assert shared_blocks(first, second, 8, 40) == 4

    def test_optional_columns(self, tmp_path: Path) -> None:
        rows = [run(i, 5, request_id=f"r{i}", priority=-i, tenant="\ud800x") for i in range(3)]
        trace = read(tmp_path, "vllm_run_jsonl", rows)
        assert trace.names == ("r0", "r1", "r2")
        assert trace.priority is not None
        assert trace.priority.tolist() == [0, -1, -2]
        assert trace.tenant == ("?x",) * 3
        assert trace.finish == "length"

    @pytest.mark.parametrize(
        ("rows", "problem"),
        [
            ([run(0, 5), run(1, 5, priority=1)], "row 2: priority appears here first"),
            ([run(0, 5, tenant="a"), run(1, 5)], "row 2: tenant is missing"),
            ([run(0, 5, priority=1.5)], "row 1: priority 1.5 is not an integer"),
            ([run(0, 5, priority=2**40)], "row 1: priority"),
            ([run(0, 40, prompt_block_ids=[1, 2])], "'block_tokens' is missing"),
            (
                [run(0, 40, block_tokens=16, prompt_block_ids=[1, 2, 3])],
                "3 prompt_block_ids for a prompt of 40 tokens; one for each full 16-token block: 2",
            ),
        ],
    )
    def test_bad_rows(self, rows: list[dict[str, Any]], problem: str, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            read(tmp_path, "vllm_run_jsonl", rows)
        assert problem in str(caught.value)


class TestVllmBench:
    def test_failed_requests_are_left_out_and_starts_sorted(self, tmp_path: Path) -> None:
        document = {
            "input_lens": [10, 20, 30],
            "output_lens": [1, 0, 3],
            "start_times": [101.5, 100.5, 100.0],
            "errors": ["", "Bad Request", ""],
        }
        trace = read(tmp_path, "vllm_bench_json", document)
        assert trace.prompt_tokens.tolist() == [30, 10]
        assert trace.arrival_s.tolist() == [0, 1.5]
        assert trace.rows.tolist() == [3, 1]
        assert trace.notes == ("requests that failed in the recorded run, left out: 1 of 3",)

    def test_without_start_times(self, tmp_path: Path) -> None:
        trace = read(tmp_path, "vllm_bench_json", {"input_lens": [1, 2], "output_lens": [3, 4]})
        assert not trace.timed
        assert trace.arrival_s.tolist() == [0, 0]

    @pytest.mark.parametrize(
        ("document", "problem"),
        [
            ({"completed": 3, "request_throughput": 1}, "run vllm bench with --save-detailed"),
            ({"input_lens": [1], "output_lens": [1, 2]}, "output_lens has 2 entries and input_le"),
            ({"input_lens": [1], "output_lens": "x"}, "output_lens is 'x', not a list"),
            ({"input_lens": [], "output_lens": []}, "holds no request"),
            ({"input_lens": [1], "output_lens": [0]}, "row 1: output_lens 0 is not positive"),
        ],
    )
    def test_bad_results(self, document: Any, problem: str, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            read(tmp_path, "vllm_bench_json", document)
        assert problem in str(caught.value)

    def test_appended_results(self, tmp_path: Path) -> None:
        path = tmp_path / "trace.json"
        path.write_text('{"input_lens": [1], "output_lens": [1]}\n' * 2)
        with pytest.raises(InputError, match="more than one JSON value; keep one"):
            read_trace(path)


def turn(role: str, tokens: Any = None, **more: Any) -> dict[str, Any]:
    length = {} if tokens is None else {"tokens": tokens}
    return {"from": role, "value": "text", **length, **more}


class TestSharegpt:
    def test_conversation(self, tmp_path: Path) -> None:
        talk = [turn("system", 100), turn("human", 20), turn("gpt", 30), turn("human", 7)]
        document = [
            {"id": "a", "conversations": [*talk, turn("gpt", 5)]},
            {"id": "b", "conversations": [turn("human", 9)]},
        ]
        trace = read(tmp_path, "sharegpt_json", document)
        assert trace.prompt_tokens.tolist() == [120, 157]
        assert trace.output_tokens.tolist() == [30, 5]
        assert not trace.timed
        assert trace.session is not None
        assert trace.session.tolist() == [0, 0]
        assert trace.turn is not None
        assert trace.turn.tolist() == [0, 1]
        assert trace.notes == ("conversations without an answer, left out: 1",)
        first, second = contents(trace)
        assert shared_blocks(first, second, 1, 157) == 150

    def test_turn_times_interleave(self, tmp_path: Path) -> None:
        document = [
            {
                "conversations": [
                    turn("user", 1, timestamp=5),
                    turn("assistant", 1),
                    turn("user", 1, timestamp=9),
                    turn("assistant", 1),
                ]
            },
            {"timestamp": 3, "conversations": [turn("user", 2), turn("assistant", 2)]},
        ]
        trace = read(tmp_path, "sharegpt_json", document)
        assert trace.arrival_s.tolist() == [0, 2, 6]
        assert trace.prompt_tokens.tolist() == [2, 1, 3]

    def test_requests_without_times(self, tmp_path: Path) -> None:
        document = [{"id": i, "input_tokens": 3, "completion_tokens": 4} for i in range(2)]
        trace = read(tmp_path, "sharegpt_json", document)
        assert trace.names == ("0", "1")
        assert not trace.timed

    @pytest.mark.parametrize(
        ("document", "problem"),
        [
            (
                [{"conversations": [turn("human", 4), turn("gpt")]}],
                "row 1: a turn has text but no length in tokens; no tokenizer is run here",
            ),
            ([{"conversations": [turn("gpt", 4)]}], "row 1: starts with an answer"),
            ([{"conversations": [5]}], "row 1: a turn is not an object"),
            ([{"prompt": "hello", "completion": "hi"}], "no length under 'prompt_tokens'"),
            (
                [{"prompt_len": 1, "output_len": 1}, {"conversations": []}],
                "row 2: requests and conversations are mixed",
            ),
            (
                [
                    {"prompt_len": 1, "output_len": 1},
                    {"prompt_len": 1, "output_len": 1, "arrival_s": 2},
                ],
                "row 2: the time is given here first",
            ),
            (
                [
                    {"timestamp": 3, "conversations": [turn("user", 2), turn("gpt", 2)]},
                    {"conversations": [turn("user", 2), turn("gpt", 2)]},
                ],
                "row 2: some answers have a time and some do not",
            ),
            ([{"conversations": [turn("user", 2)]}], "holds no request"),
        ],
    )
    def test_bad_records(self, document: Any, problem: str, tmp_path: Path) -> None:
        with pytest.raises(InputError) as caught:
            read(tmp_path, "sharegpt_json", document)
        assert problem in str(caught.value)
