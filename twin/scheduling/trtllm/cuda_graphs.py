"""Which batch sizes TensorRT-LLM captures as CUDA graphs, and what a batch is padded to.

Graphs serve batches without any context; a batch with one runs eagerly. Source: `llm_args.py`
(`CudaGraphConfig`) and `cuda_graph_runner.py` of the PyTorch backend, 1.3.0rc and 1.4rc.
"""

from bisect import bisect_left

DEFAULT_MAX_BATCH_SIZE = 128


def trtllm_capture_sizes(
    max_batch_size: int = 0, enable_padding: bool = False, stratum: str = "main"
) -> tuple[int, ...]:
    """Return the captured batch sizes, ascending.

    Args:
        max_batch_size: `cuda_graph_config.max_batch_size`; 0: the default, 128.
        enable_padding: few sizes, and batches are padded; else all small sizes.
        stratum: above 128, padded sizes go by 64 in `main` and by powers of two in `early`
            (the latter is recalled, not re-read).
    """
    largest = max_batch_size or DEFAULT_MAX_BATCH_SIZE
    sizes = {1, 2, 4, *range(8, 129, 8)} if enable_padding else {*range(1, 33), 64, 128}
    if enable_padding and stratum == "main":
        sizes.update(range(192, largest + 1, 64))
    else:
        sizes.update(2**power for power in range(8, largest.bit_length()))
    return tuple(sorted({size for size in sizes if size <= largest} | {largest}))


def trtllm_padded(
    batch: int, sizes: tuple[int, ...], max_batch_size: int, *, enable_padding: bool
) -> int | None:
    """Return the graph size that runs `batch` generations; None: it runs eagerly.

    Args:
        batch: generations of the step.
        sizes: captured sizes, ascending.
        max_batch_size: the engine's; padding never goes beyond it.
        enable_padding: without it a size must have been captured exactly.
    """
    place = bisect_left(sizes, batch)
    if place == len(sizes):
        return None
    size = sizes[place]
    if size != batch and (not enable_padding or size > max_batch_size):
        return None
    return size
