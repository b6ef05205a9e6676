import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from twin.errors import InputError
from twin.request import Request
from twin.workload.build import NO_TIMES, LoadedWorkload, load_traces
from twin.workload.spec import WorkloadSpec

ADAPTER: TypeAdapter[WorkloadSpec] = TypeAdapter(WorkloadSpec)
ROWS = 200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(
        f"2023-11-16 18:{i // 60:02d}:{i % 60:02d},{i + 1},{ROWS - i}\n" for i in range(ROWS)
    )
    (tmp_path / "azure.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows)
    (tmp_path / "bench.json").write_text('{"input_lens": [1, 2, 3], "output_lens": [4, 5, 6]}')
    (tmp_path / "run.jsonl").write_text(
        "\n".join(
            f'{{"arrival_s": {i}, "prompt_tokens": 40, "output_tokens": 9, "request_id": "r{i}", '
            f'"priority": {i}, "tenant": "t", "block_tokens": 16, "prompt_block_ids": [1, {i}]}}'
            for i in range(3)
        )
    )
    return tmp_path


def loaded(folder: Path, **spec: Any) -> LoadedWorkload:
    return load_traces(ADAPTER.validate_python(spec), folder)


def requests(folder: Path, seed: int = 0, max_model_len: int = 1000, **spec: Any) -> list[Request]:
    source = loaded(folder, **spec).source(np.random.SeedSequence(seed), max_model_len)
    found = list(source.start())
    assert source.expected_requests == len(found)
    assert [request.index for request in found] == list(range(len(found)))
    assert source.on_end(found[0], 5, rejected=False) == ()
    return found


def azure(folder: Path, **more: Any) -> list[Request]:
    return requests(folder, kind="trace", path="azure.csv", **more)


class TestTrace:
    def test_whole(self, folder: Path) -> None:
        found = azure(folder)
        assert len(found) == ROWS
        assert found[3] == Request(3, 3.0, 4, 996, stop_after_tokens=197)
        assert found[3].output_tokens == 197

    def test_answers_that_end_by_the_limit(self, folder: Path) -> None:
        assert azure(folder, finish="length")[3] == Request(3, 3.0, 4, 197)

    def test_no_room_for_an_answer(self, folder: Path) -> None:
        found = azure(folder, max_model_len=100)
        assert (found[98].prompt_tokens, found[98].max_tokens) == (99, 1)
        assert (found[150].prompt_tokens, found[150].max_tokens) == (151, 1)

    def test_too_long_at_and_past_the_limit(self, folder: Path) -> None:
        assert len(azure(folder, too_long="error", max_model_len=ROWS + 1)) == ROWS
        with pytest.raises(InputError, match=r"1 of 200 requests .* row 201 has 200 prompt tokens"):
            azure(folder, too_long="error", max_model_len=ROWS)

    def test_window_scale_and_cut(self, folder: Path) -> None:
        found = azure(folder, window_s=[10, 20], rate_scale=4, max_requests=3)
        assert [request.arrival_s for request in found] == [0, 0.25, 0.5]
        assert [request.prompt_tokens for request in found] == [11, 12, 13]

    def test_sample_is_a_share_chosen_by_the_seed(self, folder: Path) -> None:
        first, again, other = (azure(folder, sample=0.25, seed=seed) for seed in (1, 1, 2))
        assert len(first) == len(other) == 50
        assert first == again
        assert first != other
        times_s = [request.arrival_s for request in first]
        assert times_s == sorted(times_s)
        assert all(request.prompt_tokens == request.arrival_s + 1 for request in first)
        assert len(azure(folder, sample=1e-9)) == 1

    def test_new_arrivals(self, folder: Path) -> None:
        found = azure(folder, arrivals={"kind": "constant", "rate": 10}, max_requests=5)
        assert [request.arrival_s for request in found] == [0.1, 0.2, 0.3, 0.4, 0.5]
        stages = {"kind": "stages", "stages": [{"rate": 1, "duration_s": 7}]}
        assert len(azure(folder, arrivals=stages)) < ROWS

    def test_every_column_arrives(self, folder: Path) -> None:
        found = requests(folder, kind="trace", path="run.jsonl")
        assert [request.name for request in found] == ["r0", "r1", "r2"]
        assert [request.priority for request in found] == [0, 1, 2]
        assert found[0].tenant == "t"
        assert found[0].stop_after_tokens is None
        keys = [request.content.block_keys(16, 49) for request in found if request.content]
        assert len(keys) == 3
        assert keys[0][0] == keys[1][0]
        assert len({key[1] for key in keys}) == 3

    def test_notes(self, folder: Path) -> None:
        assert loaded(folder, kind="trace", path="bench.json").notes == (NO_TIMES,)
        arrivals = {"kind": "poisson", "rate": 1}
        assert loaded(folder, kind="trace", path="bench.json", arrivals=arrivals).notes == ()
        assert loaded(folder, kind="trace", path="azure.csv").notes == ()

    def test_absolute_path_and_missing_file(self, folder: Path) -> None:
        path = str(folder / "azure.csv")
        assert loaded(Path("/nowhere"), kind="trace", path=path).warmup_requests == 0
        with pytest.raises(InputError, match="no such file"):
            loaded(folder, kind="trace", path="azure.txt")


POISSON = {"kind": "poisson", "rate": 5}


def synthetic(folder: Path, **more: Any) -> list[Request]:
    base = {
        "arrivals": POISSON,
        "num_requests": 300,
        "prompt_tokens": {"kind": "uniform", "low": 5, "high": 500},
        "output_tokens": {"kind": "lognormal", "mean": 50, "std": 20},
    }
    return requests(folder, kind="synthetic", **{**base, **more})


class TestSynthetic:
    def test_seeds(self, folder: Path) -> None:
        assert synthetic(folder, seed=1) == synthetic(folder, seed=1)
        assert synthetic(folder, seed=1) != synthetic(folder, seed=2)

    def test_streams_do_not_disturb_each_other(self, folder: Path) -> None:
        plain = synthetic(folder)
        changed = synthetic(
            folder,
            output_tokens=7,
            priorities={0: 1, 9: 1},
            prefixes={"num_prefixes": 3, "prefix_tokens": 32},
        )
        assert [r.arrival_s for r in plain] == [r.arrival_s for r in changed]
        assert [r.prompt_tokens + 32 for r in plain] == [r.prompt_tokens for r in changed]

    def test_the_root_seed_stays_as_it_is(self, folder: Path) -> None:
        seed = np.random.SeedSequence(5)
        workload = loaded(
            folder,
            kind="synthetic",
            arrivals=POISSON,
            num_requests=10,
            prompt_tokens=1,
            output_tokens=1,
        )
        first = workload.source(seed, 100).start()
        assert seed.n_children_spawned == 0
        assert workload.source(seed, 100).start() == first
        other = workload.source(seed.spawn(1)[0], 100).start()
        assert other != first

    def test_priorities_by_weight(self, folder: Path) -> None:
        found = synthetic(folder, priorities={-1: 1, 5: 3}, num_requests=4000)
        high = sum(request.priority == 5 for request in found)
        assert high + sum(request.priority == -1 for request in found) == 4000
        assert high == pytest.approx(3000, rel=0.05)

    def test_shared_prefixes(self, folder: Path) -> None:
        found = synthetic(
            folder, prompt_tokens=20, prefixes={"num_prefixes": 4, "prefix_tokens": 40}
        )
        keys = [request.content.block_keys(16, 60) for request in found if request.content]
        assert len(keys) == 300
        assert len({tuple(key[:2]) for key in keys}) == 4
        assert len({key[2] for key in keys}) == 300

    def test_empirical_lengths(self, folder: Path) -> None:
        empirical = {"kind": "empirical", "path": "azure.csv"}
        found = synthetic(folder, prompt_tokens=empirical, output_tokens=empirical)
        assert all(r.prompt_tokens + r.output_tokens == ROWS + 1 for r in found)
        assert len({request.prompt_tokens for request in found}) > 100

    def test_too_long(self, folder: Path) -> None:
        with pytest.raises(InputError, match=r"workload.prompt_tokens: \d+ of 300 requests"):
            synthetic(folder, too_long="error", max_model_len=400)
        assert len(synthetic(folder, max_model_len=400)) == 300

    def test_the_collector_runs_again_afterwards(self, folder: Path) -> None:
        assert gc.isenabled()
        synthetic(folder)
        assert gc.isenabled()
        with pytest.raises(InputError):
            synthetic(folder, too_long="error", max_model_len=2)
        assert gc.isenabled()
