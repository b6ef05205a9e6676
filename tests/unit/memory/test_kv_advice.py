"""Advice on FP8 KV: against it below the break-even, for it above, and where KV is what lacks."""

import pytest

from twin.engine import simulate
from twin.load import scenario_from
from twin.memory.kv_advice import Run, advise
from twin.memory.kv_load import own_load
from twin.report.metrics import summarise


def run(dtype, gpu, load, **policy):
    scenario = scenario_from(
        {
            "schema_version": 1,
            "name": "t",
            "llm": "llama-3.1-8b",
            "gpu": gpu,
            "policy": {"kv_cache_dtype": dtype, "enable_prefix_caching": False, **policy},
            "workload": {"kind": "closed_loop", **load},
        }
    )
    result = simulate(scenario)
    return Run(scenario, result, summarise(result))


def load(concurrency, prompt, output, num_requests=None):
    return {
        "concurrency": concurrency,
        "num_requests": num_requests or 3 * concurrency,
        "prompt_tokens": prompt,
        "output_tokens": output,
    }


def advice(gpu, of, dtype="fp8", **policy):
    return advise(run("auto", gpu, of, **policy), run(dtype, gpu, of, **policy))


@pytest.mark.parametrize("of", [load(1, 1024, 256), load(4, 1024, 128), load(8, 512, 128)])
def test_short_contexts_on_a100_speak_against_it(of):
    found = advice("a100_sxm", of)
    assert found.verdict == "against"
    assert not found.measured
    first = found.break_even[found.load.seqs].first
    assert found.load.context_tokens < first
    assert found.own.step > 1


def test_a_gain_within_its_noise_speaks_against_it():
    found = advice("a100_sxm", load(4, 6000, 256))
    assert found.own.request < 1
    assert 1 - found.own.request < found.own.request_noise
    assert found.verdict == "against"
    assert found.sure != "sure"


@pytest.mark.parametrize("of", [load(8, 32768, 1024), load(4, 65536, 2048), load(1, 65536, 2048)])
def test_long_contexts_on_h100_speak_for_it(of):
    found = advice("h100_sxm", of)
    assert found.verdict == "for"
    assert found.measured
    assert found.load.context_tokens > found.break_even[found.load.seqs].first
    assert found.capacity_ratio == pytest.approx(2, abs=0.01)


def test_surely_where_the_gain_is_larger_than_forecasts_err():
    found = advice("h100_sxm", load(8, 32768, 1024))
    assert 1 - found.own.request > found.forecast.tpot_median
    assert found.sure == "sure"


def test_where_kv_is_what_lacks_capacity_is_the_reason():
    of = load(48, 1024, 512, 144)
    ample = advice("a100_sxm", load(8, 1024, 512))
    tight = advise(
        run("auto", "a100_sxm", of, max_model_len=2048, num_gpu_blocks=1000),
        run("fp8", "a100_sxm", of, max_model_len=2048, num_gpu_blocks=2000),
    )
    assert not ample.plain.binds
    assert tight.plain.binds
    assert tight.verdict == "for"
    assert "KV cache is what lacks" in tight.reasons[0]
    assert tight.capacity_ratio == 2


def test_where_more_kv_changes_nothing_it_is_said():
    of = load(48, 1024, 512, 144)
    same = {"max_model_len": 2048, "num_gpu_blocks": 1000}
    found = advise(run("auto", "a100_sxm", of, **same), run("fp8", "a100_sxm", of, **same))
    assert found.plain.binds
    assert found.verdict == "against" or "changes nothing" in found.reasons[0]


def test_on_ampere_triton_prefill_outweighs_decode():
    found = advice("a100_sxm", load(4, 16384, 128), "int8_per_token_head")
    assert found.own.step < 1 < found.own.prefill
    assert found.verdict == "against"


def test_own_load_is_that_of_the_run():
    found = own_load(run("auto", "h100_sxm", load(4, 1000, 200)).result)
    assert found.seqs == 4
    assert (found.prompt_tokens, found.output_tokens, found.cached_tokens) == (1000, 200, 0)
    assert found.context_tokens == 1100


def test_plain_data_has_every_batch_as_text():
    found = advice("h100_sxm", load(2, 512, 32)).as_dict()
    assert set(found["break_even"]) == {str(batch) for batch in found["batches"]}
    assert found["plain"]["binds"] is False
