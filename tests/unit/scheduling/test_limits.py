"""What limits accept and which requests they turn away."""

import pytest

from twin.errors import InputError
from twin.request import Request
from twin.scheduling import SchedulerLimits


def limits(**changes: object) -> SchedulerLimits:
    values = {
        "max_num_seqs": 4,
        "max_num_batched_tokens": 100,
        "max_model_len": 100,
        "block_size": 10,
        "num_gpu_blocks": 11,
    }
    return SchedulerLimits(**{**values, **changes})  # type: ignore[arg-type]


def request(prompt: int, output: int, stop: int | None = None) -> Request:
    return Request(0, 0.0, prompt, output, stop_after_tokens=stop)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_num_seqs", 0),
        ("max_num_batched_tokens", 0),
        ("max_model_len", -1),
        ("block_size", 0),
        ("num_gpu_blocks", 0),
        ("long_prefill_token_threshold", -1),
        ("watermark", 1.0),
        ("watermark", -0.1),
    ],
)
def test_values_no_engine_starts_with(name: str, value: float) -> None:
    with pytest.raises(InputError, match=name):
        limits(**{name: value})


def test_a_prompt_must_leave_room_for_one_token() -> None:
    assert limits().fits(request(99, 1))
    assert limits().fits(request(99, 50))  # the context ends it after one token
    assert not limits().fits(request(100, 1))


def test_a_request_must_fit_when_it_is_alone() -> None:
    roomy = {"max_model_len": 1000, "max_num_batched_tokens": 1000}
    assert limits(**roomy).fits(request(60, 40))  # 100 tokens, 10 usable blocks
    assert not limits(**roomy).fits(request(60, 41))
    assert limits(**roomy).fits(request(60, 400, stop=40))
    assert not limits(**roomy).fits(request(60, 400, stop=41))


def test_without_chunked_prefill_a_step_must_hold_it_all() -> None:
    whole = {"enable_chunked_prefill": False, "max_num_batched_tokens": 50}
    assert limits(**whole).fits(request(40, 10))
    assert not limits(**whole).fits(request(40, 11))
    assert limits(max_num_batched_tokens=50).fits(request(40, 11))


def test_watermark_counts_the_null_block() -> None:
    assert limits(num_gpu_blocks=20, watermark=0.05).watermark_blocks == 1
    assert limits(num_gpu_blocks=19, watermark=0.05).watermark_blocks == 0


def test_output_ends_at_the_first_of_three_limits() -> None:
    assert limits().output_limit(request(50, 20)) == 20
    assert limits().output_limit(request(50, 20, stop=5)) == 5
    assert limits().output_limit(request(90, 20)) == 10
    assert limits().output_limit(request(100, 20)) == 1
