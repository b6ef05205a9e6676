"""What `twin kv-dtype` says beside its table."""

from dataclasses import replace

import pytest

from tests.golden.export.cases import BASE
from twin.engine import simulate
from twin.load import scenario_from
from twin.memory.kv_advice import KvAdvice, Run, advise
from twin.report.kv_dtype import advice_lines
from twin.report.metrics import summarise


def run(dtype: str, ttft_s: float) -> Run:
    data = {**BASE, "slo": {"ttft_s": ttft_s}, "policy": {"kv_cache_dtype": dtype}}
    scenario = scenario_from(data)
    result = simulate(scenario)
    return Run(scenario, result, summarise(result))


def advised(ttft_s: float) -> KvAdvice:
    return advise(run("auto", ttft_s), run("fp8", ttft_s))


def slo_lines(found: KvAdvice) -> list[str]:
    return [line for line in advice_lines(found) if line.startswith("SLO")]


def test_an_slo_that_every_dtype_misses_is_told() -> None:
    missed = slo_lines(advised(1e-6))
    assert len(missed) == 1
    assert "missed with 16 bits and with fp8 alike (0 % and 0 % of requests keep it)" in missed[0]


def test_an_slo_that_is_met_is_not_mentioned() -> None:
    found = advised(10)
    assert found.plain.slo_met
    assert slo_lines(found) == []
    assert slo_lines(replace(found, plain=replace(found.plain, slo_met=None))) == []


@pytest.mark.parametrize(
    ("side", "said"), [("plain", "met with fp8"), ("other", "met with 16 bit")]
)
def test_an_slo_that_one_dtype_misses_says_which(side: str, said: str) -> None:
    found = advised(10)
    half = replace(found, **{side: replace(getattr(found, side), slo_met=False)})
    assert said in slo_lines(half)[0]
