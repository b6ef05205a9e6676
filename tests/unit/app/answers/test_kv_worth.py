import pytest

from app.answers.capacity.kv_dtypes import dtype_table, kv_dtypes, quality_words
from app.answers.capacity.kv_worth import KvWorth, kv_worth
from app.answers.kinds import KINDS
from app.answers.setup import Setup
from tests.unit.app.pooled import POOLED
from twin.errors import InputError
from twin.forecast_error import difference_error
from twin.report.numbers import percent

SMALL = {"workload.num_requests": 60}


@pytest.fixture(scope="module")
def worth():
    said = []
    asked = {"setup": Setup("chat-h100", None, SMALL).as_dict(), "dtype": "fp8"}
    with pytest.MonkeyPatch.context() as patched:
        # Compiled code, where there is some, tells of no progress.
        patched.setattr("app.answers.capacity.kv_worth.quickest_engine", lambda: "interpreted")
        answer = KINDS["kv_dtype"](asked, lambda *told: said.append(told))
    assert said[-1] == (120, 120, "requests")
    return KvWorth(**answer)


def test_one_sentence_says_whether_it_is_worth_it_and_how_sure(worth):
    assert worth.sentence.startswith("FP8 KV: ")
    # Memory is not short, and a forecast's error could feign what GPU time it saves.
    assert "no clear gain here, within forecast error (±12.7 %)" in worth.sentence
    assert "+100 % KV tokens, which this load is not short of" in worth.sentence
    assert "P99 ITL" in worth.sentence


def test_a_difference_within_the_forecasts_error_is_no_gain(worth):
    assert worth.latencies["Latency"] == ["TTFT P50", "TTFT P99", "ITL P50", "ITL P99"]
    # Other dtypes are other prices: the two forecasts' errors count as independent.
    error = difference_error(experts=False, same_prices=False)
    assert percent(error.tpot_p90) in worth.error
    assert worth.latencies["Change"][3].endswith("within error: no clear gain")


def test_the_break_even_is_told_for_the_scenarios_own_batch(worth):
    assert worth.break_even[0].startswith("A decode step of this scenario's ")
    assert "tokens of context each" in worth.break_even[0] or "no context" in worth.break_even[0]
    assert worth.steps["Sequences"][-1] == "prompt alone"
    assert any(line.startswith("Advice: ") for line in worth.lines)


def test_the_setups_own_dtype_makes_no_difference(worth):
    own = Setup("chat-h100", None, {**SMALL, "policy.kv_cache_dtype": "fp8"})
    assert kv_worth(own, "fp8") == worth


def test_where_kv_is_short_it_is_worth_it():
    short = {"policy.num_gpu_blocks": 1200, "policy.max_model_len": 16384, **SMALL}
    found = kv_worth(Setup("chat-h100", None, {**short, "workload.arrivals.rate": 40.0}), "fp8")
    assert "FP8 KV: worth it here" in found.sentence
    assert "which this load is short of" in found.sentence


def test_where_no_run_was_held_out_the_error_is_unknown():
    found = kv_worth(Setup("summarisation-a100", None, {"workload.num_requests": 20}), "fp8")
    assert found.error == "Error unknown: no serving run on a100_sxm was held out."
    assert "error unknown" in found.sentence


def test_a_pool_with_a_dtype_of_its_own_is_refused():
    one, two = POOLED["cluster"]["pools"]
    pools = [{**one, "policy": {"kv_cache_dtype": "fp8"}}, two]
    with pytest.raises(InputError, match="kv_cache_dtype of its own"):
        kv_worth(Setup("", {**POOLED, "cluster": {"pools": pools}}), "fp8")


def test_dtypes_beside_each_other():
    dtypes = kv_dtypes(Setup("chat-h100"))
    table = dtype_table(dtypes)
    assert table["KV dtype"][0] == "auto (now)"
    assert table["Blocks vs auto"][:2] == ["±0 %", "+100 %"]
    assert table["Rounding error, at least"][0] == "none"
    fp8 = next(dtype for dtype in dtypes if dtype.name == "fp8")
    assert fp8.token_bytes * 2 == dtypes[0].token_bytes
    assert "at least 2.70 %" in quality_words(fp8)
    assert "GSM8K" in quality_words(fp8)
    assert quality_words(dtypes[0]) == ""


def test_an_engine_offers_its_own_dtypes_alone():
    names = {dtype.name for dtype in kv_dtypes(Setup("chat-h100", None, {"engine.name": "trtllm"}))}
    assert names == {"auto", "fp8"}
