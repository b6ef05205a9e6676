"""docs/guide/search_verdict.md against the program."""

import re
from pathlib import Path

import pytest

from tests.unit.search.judging.fake_runs import ITL, TTFT
from tests.unit.search.judging.made_up import report
from twin.forecast_error import STANDS_IN
from twin.search.judging.binding import BUSY, FULL
from twin.search.judging.error_of_difference import threshold
from twin.search.judging.importance import FEWEST_TRIALS
from twin.search.judging.pareto import TIE
from twin.search.judging.report import search_summary
from twin.search.judging.sensitivity import MOST_RUNS
from twin.search.judging.verdict import MOST_TRIED

PAGE = Path(__file__).resolve().parents[4] / "docs" / "guide" / "search_verdict.md"
TEXT = PAGE.read_text(encoding="utf-8")

EXPORT = PAGE.with_name("export.md").read_text(encoding="utf-8")


def keys_of(name):
    table = TEXT.split(f"<!-- keys: {name} -->\n")[1].split("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines()[2:]]
    return sorted(key for cell in cells for key in re.findall(r"`([^`]+)`", cell))


def test_every_key_of_the_summary_is_told():
    found = search_summary(report(ITL, TTFT))
    flat = [
        f"{key}.{inner}" if key in ("counts", "hardware", "binds") else key
        for key, value in found.items()
        for inner in (value if key in ("counts", "hardware", "binds") else [""])
    ]
    assert keys_of("search") == sorted(flat)
    assert keys_of("confirmation") == sorted(found["confirmations"][0])
    assert keys_of("gain") == sorted(found["confirmations"][0]["gains"][0])


@pytest.mark.parametrize("experts", [False, True])
@pytest.mark.parametrize("key", ["policy.max_num_seqs", "parallelism.tp"])
def test_thresholds_are_the_programs(experts, key):
    ttft, other = (threshold(name, [key], experts=experts) for name in (TTFT, ITL))
    assert f"| {100 * ttft:.1f} % | {100 * other:.1f} % |" in TEXT


def test_numbers_are_the_programs():
    for text in (TEXT, EXPORT):
        assert STANDS_IN in re.sub(r"\s+(# +)?", " ", text)
    assert f"within {100 * TIE:g} %" in TEXT
    assert f"at most {MOST_RUNS} runs" in TEXT
    assert f"needs {FEWEST_TRIALS} trials" in TEXT
    assert f"{FULL:.0%}".replace("%", " %") in TEXT
    assert f"{BUSY:.0%}".replace("%", " %") in TEXT
    assert MOST_TRIED == 3
    assert "at most three in all" in TEXT
