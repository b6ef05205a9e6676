"""Which batch sizes have a graph and what a batch is padded to."""

import pytest

from twin.scheduling.trtllm import trtllm_capture_sizes, trtllm_padded


def test_without_padding_all_small_sizes() -> None:
    sizes = trtllm_capture_sizes()
    assert sizes == (*range(1, 33), 64, 128)
    assert trtllm_capture_sizes(1000) == (*range(1, 33), 64, 128, 256, 512, 1000)
    assert trtllm_capture_sizes(512)[-2:] == (256, 512)
    assert trtllm_capture_sizes(20) == tuple(range(1, 21))
    assert trtllm_capture_sizes(50) == (*range(1, 33), 50)


def test_with_padding_multiples_of_8_then_of_64() -> None:
    sizes = trtllm_capture_sizes(0, enable_padding=True)
    assert sizes == (1, 2, 4, *range(8, 129, 8))
    assert trtllm_capture_sizes(300, enable_padding=True)[-4:] == (128, 192, 256, 300)
    assert trtllm_capture_sizes(1024, enable_padding=True)[-2:] == (960, 1024)
    assert trtllm_capture_sizes(5, enable_padding=True) == (1, 2, 4, 5)


def test_early_stratum_goes_on_by_powers_of_two() -> None:
    sizes = trtllm_capture_sizes(1000, enable_padding=True, stratum="early")
    assert sizes[-4:] == (128, 256, 512, 1000)


@pytest.mark.parametrize(
    ("batch", "padding", "size"),
    [(33, True, 40), (40, True, 40), (128, True, 128), (129, True, None), (33, False, None)],
)
def test_padded_size(batch: int, padding: bool, size: int | None) -> None:
    sizes = trtllm_capture_sizes(128, enable_padding=True)
    assert trtllm_padded(batch, sizes, 2048, enable_padding=padding) == size


def test_padding_never_exceeds_the_engine_batch() -> None:
    sizes = trtllm_capture_sizes(128, enable_padding=True)
    assert trtllm_padded(33, sizes, 40, enable_padding=True) == 40
    assert trtllm_padded(33, sizes, 39, enable_padding=True) is None
    assert trtllm_padded(32, sizes, 39, enable_padding=True) == 32
