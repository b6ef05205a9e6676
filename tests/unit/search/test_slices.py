"""Parts of a workload do not overlap, cover it, and are the same each time."""

import math
from pathlib import Path

import numpy as np
import pytest

from twin.errors import InputError
from twin.load.inputs import Inputs, read_inputs
from twin.load.scenario_file import scenario_from
from twin.search.piece import Piece
from twin.search.slices import Slicer, fresh_seed, shortened

ROWS = 200


def trace_file(tmp_path, *, gap_s=1.0):
    path = tmp_path / "trace.csv"
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for i in range(ROWS):
        seconds = i * gap_s
        lines.append(f"2023-11-16 18:{int(seconds // 60):02d}:{seconds % 60:09.6f},{100 + i},10")
    path.write_text("\n".join(lines) + "\n")
    return path


def slicer(tmp_path, share=0.7, horizon_s=None, **spec):
    path = trace_file(tmp_path)
    data = {
        "schema_version": 1, "llm": "llama-3.1-8b", "gpu": "h100_sxm", "seed": 5,
        "workload": {"kind": "trace", "path": str(path), **spec},
    }  # fmt: skip
    if horizon_s is not None:
        data["horizon_s"] = horizon_s
    file = scenario_from(data).file
    return Slicer(file, read_inputs(file, Path(), where="test"), share)


def prompts(cut):
    (trace,) = cut.workload.traces.values()
    return trace.prompt_tokens.tolist()


def test_parts_of_a_trace_cover_it_without_overlap(tmp_path):
    whole = slicer(tmp_path)
    search, held_out = prompts(whole.cut(Piece("search"))), prompts(whole.cut(Piece("held_out")))
    assert search + held_out == prompts(whole.cut(Piece("all"))) == list(range(100, 100 + ROWS))
    assert len(search) == math.ceil(0.7 * (ROWS - 1))


def test_window_of_the_file_is_what_is_cut(tmp_path):
    whole = slicer(tmp_path, window_s=[50, 150])
    assert prompts(whole.cut(Piece("search"))) + prompts(whole.cut(Piece("held_out"))) == list(
        range(150, 250)
    )


def test_share_keeps_the_first_of_a_part_and_start_passes_over(tmp_path):
    whole = slicer(tmp_path)
    search = prompts(whole.cut(Piece("search")))
    half, rest = (whole.cut(Piece("search", share=0.5, start=start)) for start in (0.0, 0.5))
    assert prompts(half) + prompts(rest) == search
    assert prompts(half) == search[: len(prompts(half))]
    (trace,) = rest.workload.traces.values()
    assert trace.arrival_s[0] < 1.0  # its own times start at 0


def test_limit_on_requests_is_kept_before_cutting(tmp_path):
    whole = slicer(tmp_path, max_requests=100)
    assert prompts(whole.cut(Piece("search"))) + prompts(whole.cut(Piece("held_out"))) == list(
        range(100, 200)
    )


def test_arrivals_of_its_own_cut_a_trace_by_rows(tmp_path):
    whole = slicer(tmp_path, arrivals={"kind": "poisson", "rate": 5})
    assert len(prompts(whole.cut(Piece("search")))) == round(0.7 * ROWS)
    assert prompts(whole.cut(Piece("search"))) + prompts(whole.cut(Piece("held_out"))) == list(
        range(100, 300)
    )


def test_horizon_is_split_with_the_trace(tmp_path):
    whole = slicer(tmp_path, horizon_s=100)
    search, held_out = whole.cut(Piece("search")), whole.cut(Piece("held_out"))
    assert search.horizon_s == pytest.approx(70)
    assert held_out.horizon_s == pytest.approx(30)
    late = slicer(tmp_path, horizon_s=500)
    assert late.cut(Piece("search")).horizon_s == pytest.approx(500 - 0.3 * (ROWS - 1))


def test_part_without_a_request_is_refused(tmp_path):
    (tmp_path / "sub").mkdir()
    whole = slicer(tmp_path, window_s=[0, 2], share=0.01)
    with pytest.raises(InputError, match="no request"):
        whole.cut(Piece("search", share=0.01, start=0.5))


def made_up(**workload):
    data = {
        "schema_version": 1, "llm": "llama-3.1-8b", "gpu": "h100_sxm", "seed": 5,
        "workload": {"prompt_tokens": 100, "output_tokens": 10, **workload},
    }  # fmt: skip
    file = scenario_from(data).file
    return Slicer(file, read_inputs(file, Path(), where="test"), 0.7)


POISSON = {"kind": "synthetic", "arrivals": {"kind": "poisson", "rate": 5}}


def test_made_up_requests_are_fresh_for_the_winner():
    whole = made_up(**POISSON, num_requests=50)
    search, held_out = whole.cut(Piece("search")), whole.cut(Piece("held_out"))
    assert search.seed == 5
    assert held_out.seed == fresh_seed(5) != 5
    assert whole.cut(Piece("held_out", seed=6)).seed == fresh_seed(6) != held_out.seed
    first, second = (
        [r.arrival_s for r in cut.workload.source(np.random.SeedSequence(cut.seed), 8192).start()]
        for cut in (search, held_out)
    )
    assert len(first) == len(second) == 50
    assert not set(first) & set(second)


@pytest.mark.parametrize(
    ("workload", "requests"),
    [
        ({**POISSON, "num_requests": 50}, 25),
        ({"kind": "closed_loop", "concurrency": 4, "num_requests": 50}, 25),
        ({"kind": "closed_loop", "concurrency": 40, "num_requests": 50}, 40),
        (
            {
                "kind": "synthetic",
                "arrivals": {
                    "kind": "stages",
                    "stages": [
                        {"rate": 10, "duration_s": 4, "arrivals": "constant"},
                        {"rate": 1, "duration_s": 4, "arrivals": "constant"},
                    ],
                },
            },
            40,
        ),
    ],
)
def test_half_of_a_made_up_workload(workload, requests):
    cut = made_up(**workload).cut(Piece("search", share=0.5))
    source = cut.workload.source(np.random.SeedSequence(5), 8192)
    if source.expected_requests is None:
        pytest.fail("how many come is known")
    assert source.expected_requests == requests


def test_whole_is_left_alone():
    spec = made_up(**POISSON, num_requests=50).file.workload
    assert shortened(spec, 1.0) is spec


def test_share_has_to_be_one(tmp_path):
    for share, start in ((0.0, 0.0), (1.1, 0.0), (0.5, 0.6)):
        with pytest.raises(ValueError, match="share"):
            slicer(tmp_path).cut(Piece("search", share=share, start=start))


def test_inputs_are_read_once(tmp_path):
    whole = slicer(tmp_path)
    for path in tmp_path.iterdir():
        path.unlink()
    assert isinstance(whole.inputs, Inputs)
    assert len(prompts(whole.cut(Piece("all")))) == ROWS
