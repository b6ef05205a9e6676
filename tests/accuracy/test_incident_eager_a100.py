"""vLLM issue 42058: Qwen3-8B on one A100, eager, 8 prompts at once, 256 tokens each.

Time to first token is read as that of the last of the 8 prompts: eight times one prompt's prefill
explains the report, a mean would be little more than half of it. One number was fitted here: the
operations of an eager layer, on the decode rate at 1k with bf16 KV.
"""

import pytest

from twin.engine import simulate
from twin.load import scenario_from

PROMPTS = (1024, 4096, 8192, 16384)
TTFT_S = {"auto": (0.541, 2.277, 5.001, 11.790), "fp8": (0.569, 2.332, 5.132, 12.206)}
DECODE_TOKENS_PER_S = {"auto": (227.8, 227.3, 228.2, 219.2), "fp8": (228.8, 238.6, 232.2, 231.3)}


def forecast(kv_cache_dtype, prompt_tokens):
    result = simulate(
        scenario_from(
            {
                "schema_version": 1,
                "llm": "qwen3-8b",
                "gpu": "a100_sxm",
                "engine": {"name": "vllm", "version": "0.26.0"},
                "policy": {
                    "kv_cache_dtype": kv_cache_dtype,
                    "enforce_eager": True,
                    "enable_prefix_caching": False,
                },
                "workload": {
                    "kind": "closed_loop",
                    "concurrency": 8,
                    "num_requests": 8,
                    "prompt_tokens": prompt_tokens,
                    "output_tokens": 256,
                },
            }
        )
    ).requests
    last_first_token_s = float((result.first_token_s - result.arrival_s).max())
    decode_s = float(result.finish_s.max()) - last_first_token_s
    return last_first_token_s, 8 * 255 / decode_s


@pytest.fixture(scope="module")
def forecasts():
    return {(kv, prompt): forecast(kv, prompt) for kv in TTFT_S for prompt in PROMPTS}


@pytest.mark.parametrize("kv", sorted(TTFT_S))
@pytest.mark.parametrize("row", range(4))
def test_within_ten_per_cent(forecasts, kv, row):
    ttft_s, rate = forecasts[kv, PROMPTS[row]]
    assert ttft_s == pytest.approx(TTFT_S[kv][row], rel=0.10)
    assert rate == pytest.approx(DECODE_TOKENS_PER_S[kv][row], rel=0.10)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_fp8_kv_costs_prefill_and_helps_decode(forecasts, prompt):
    plain, fp8 = forecasts["auto", prompt], forecasts["fp8", prompt]
    assert fp8[0] > plain[0]
    # At 1k both wait for their launches: the report's 0.4 % there is within what runs differ by.
    assert fp8[1] > plain[1] * (0.999 if prompt == 1024 else 1.0)
