"""The guide's page against the tables it tells of."""

from pathlib import Path

import pytest

from twin.llm.quality import KV_LOSS, LOSSLESS, WEIGHT_LOSS
from twin.search.objectives import OBJECTIVES
from twin.search.space import SPACE

PAGE = Path(__file__).resolve().parents[3] / "docs" / "guide" / "search_space.md"
ROWS = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
TOLD = {row[0].removeprefix("| ").strip("`"): row for row in ROWS}
NAMES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}


@pytest.mark.parametrize("knob", SPACE, ids=lambda knob: knob.key)
def test_every_knob_is_told(knob):
    row = TOLD[knob.key]
    assert row[1] == knob.about
    every = len(knob.engines) == len(NAMES)
    engines = "all" if every else ", ".join(NAMES[name] for name in sorted(knob.engines))
    assert row[3].removesuffix(" |") == engines


def test_no_knob_is_told_that_is_none():
    keys = {key for key in TOLD if "." in key}
    assert keys == {knob.key for knob in SPACE}


def test_every_objective_and_format_is_told():
    text = PAGE.read_text()
    assert all(TOLD[name] for name in OBJECTIVES)
    for kind, table in (("KV", KV_LOSS), ("weights", WEIGHT_LOSS)):
        for name, loss in table.items():
            if loss is not LOSSLESS:
                (row,) = (
                    line
                    for line in text.splitlines()
                    if line.startswith(f"| {kind} ") and f"`{name}`" in line
                )
                assert f"{100 * loss.error:.1f} %" in row
