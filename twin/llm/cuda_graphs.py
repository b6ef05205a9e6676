"""Which batch sizes vLLM captures as CUDA graphs, and what a batch is padded to.

Source: vLLM 0.33.0, `_set_cudagraph_sizes`. A batch above the largest size runs without a graph.
"""

from bisect import bisect_left

_FULL_LIMIT = 512
_FULL_LIMIT_B200 = 1024  # data-centre Blackwell
_INTERACTIVE_LIMIT = 32


def capture_sizes(
    max_num_seqs: int,
    max_num_batched_tokens: int,
    *,
    decode_query_len: int = 1,
    datacenter_blackwell: bool = False,
    interactive: bool = False,
    largest_captured: int | None = None,
) -> tuple[int, ...]:
    """Return the captured sizes in tokens, ascending.

    1, 2, 4, multiples of 8 below 256, then multiples of 16, up to twice the tokens of a full
    decode batch, at most 512; `max_num_batched_tokens` is one more when it doesn't exceed that.

    Args:
        decode_query_len: tokens a decoding sequence computes a step (speculative ones included).
        datacenter_blackwell: the cap is then 1024.
        interactive: vLLM's interactivity mode captures every size up to 32.
        largest_captured: `max_cudagraph_capture_size`, which replaces the cap and the batch's.
    """
    cap = _FULL_LIMIT_B200 if datacenter_blackwell else _FULL_LIMIT
    largest = min(2 * max_num_seqs * decode_query_len, cap)
    largest = min(largest_captured or largest, max_num_batched_tokens)
    if interactive:
        sizes = set(range(1, min(largest, _INTERACTIVE_LIMIT) + 1))
    else:
        sizes = {size for size in (1, 2, 4) if size <= largest}
    sizes.update(size for size in range(8, min(largest, 255) + 1, 8))
    sizes.update(range(256, largest + 1, 16))
    if max_num_batched_tokens <= largest:
        sizes.add(max_num_batched_tokens)
    return tuple(sorted(sizes))


def padded(num_tokens: int, sizes: tuple[int, ...]) -> int | None:
    """Return the least captured size that holds `num_tokens`; None: it runs without a graph."""
    index = bisect_left(sizes, num_tokens)
    return sizes[index] if index < len(sizes) else None
