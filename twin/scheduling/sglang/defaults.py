"""What SGLang 0.5.23 sets when the operator sets nothing, by memory of the GPU.

Source: `arg_groups/memory_hook.py` and `arg_groups/cuda_graph_hook.py` of that version (CUDA, no
speculation, no DP attention, no MLA, breakable prefill graphs); read, not measured on a GPU.
"""

from dataclasses import dataclass

from twin.errors import InputError

_MIB = 2**20
_GIB_MIB = 1024

# Below so many MiB of GPU memory: chunked_prefill_size, largest decode graph with tp < 4, else.
_BY_MEMORY: tuple[tuple[float, int, int, int], ...] = (
    (20 * _GIB_MIB, 2048, 8, 8),
    (35 * _GIB_MIB, 4096, 48, 160),
    (60 * _GIB_MIB, 4096, 32, 160),
    (160 * _GIB_MIB, 8192, 256, 512),
    (float("inf"), 16384, 512, 512),
)
_UNKNOWN_MEMORY = (4096, 160)
_UNKNOWN_FRACTION = 0.95
_LARGE_TP = 4

_RESERVED_MIB = 512
_MIB_PER_TOKEN = 1.5
_FEWEST_TOKENS = 2048
_MIB_PER_RANK = 128
_MIB_PER_DECODE_REQUEST = 2
_MIB_PER_PREFILL_GRAPH = 8
_LARGE_GPU_MIB = 60 * _GIB_MIB
_LARGE_GPU_RESERVED_MIB = 10 * _GIB_MIB

_FEWEST_REQUESTS, _MOST_REQUESTS = 2048, 4096
_REQUESTS_PER_CONTEXT = 512

MAX_PREFILL_TOKENS = 16384


@dataclass(frozen=True, slots=True)
class SglangDefaults:
    """Resolved defaults of one server.

    Attributes:
        chunked_prefill_size: prompt tokens of a batch; 0 or less: prompts are not split.
        cuda_graph_max_bs_decode: requests of the largest decode graph.
        mem_fraction_static: share of GPU memory for weights and KV, three decimals.
    """

    chunked_prefill_size: int
    cuda_graph_max_bs_decode: int
    mem_fraction_static: float

    def decode_graph_sizes(self) -> list[int]:
        """Return the batch sizes with a decode graph, ascending."""
        return decode_graph_sizes(self.cuda_graph_max_bs_decode)


def sglang_defaults(
    memory_bytes: int | None,
    tp: int = 1,
    pp: int = 1,
    *,
    chunked_prefill_size: int | None = None,
    max_running_requests: int | None = None,
) -> SglangDefaults:
    """Return what a server resolves.

    Args:
        memory_bytes: memory of one GPU as `nvidia-smi` reports it; None: unknown.
        tp, pp: parallel ranks.
        chunked_prefill_size: as given; None: by memory; 0 or less: off.
        max_running_requests: as given; caps the decode graphs.

    Raises:
        InputError: memory, tp or pp that no server has.
    """
    for name, value in (("memory_bytes", memory_bytes), ("tp", tp), ("pp", pp)):
        if value is not None and value < 1:
            raise InputError(f"{name} is {value}", remedy="give at least 1")
    memory_mib = None if memory_bytes is None else memory_bytes / _MIB
    chunk, graph = _by_memory(memory_mib, tp)
    if chunked_prefill_size is not None:
        chunk = chunked_prefill_size
    if max_running_requests is not None:
        graph = min(graph, max_running_requests)
    fraction = _UNKNOWN_FRACTION
    if memory_mib is not None:
        reserved = _reserved_mib(chunk, graph, tp * pp, large=memory_mib > _LARGE_GPU_MIB)
        fraction = round((memory_mib - reserved) / memory_mib, 3)
    return SglangDefaults(chunk, graph, fraction)


def max_running_requests(
    pool_tokens: int, context_length: int, given: int | None = None, attn_dp: int = 1
) -> int:
    """Return how many requests may run at once on one worker.

    Args:
        pool_tokens: KV tokens.
        context_length: longest request, tokens.
        given: what the operator asks for; it may be lowered by memory.
        attn_dp: data-parallel attention ranks that share `given`.
    """
    if given is None:
        estimate = int(pool_tokens / context_length * _REQUESTS_PER_CONTEXT)
        most = min(max(estimate, _FEWEST_REQUESTS), _MOST_REQUESTS)
    else:
        most = max(1, given // attn_dp)
    return min(most, pool_tokens // 2)


def decode_graph_sizes(max_bs: int) -> list[int]:
    """Return the batch sizes with a decode graph, ascending, `max_bs` the last."""
    sizes = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 512, 16), *range(512, max_bs + 1, 32)]
    return [*(size for size in sizes if size < max_bs), max_bs]


def prefill_graph_sizes(max_tokens: int) -> list[int]:
    """Return the token counts with a prefill graph, ascending."""
    sizes = [
        *range(4, 33, 4),
        *range(48, 257, 16),
        *range(288, 513, 32),
        *range(576, 1025, 64),
        *range(1280, 4097, 256),
        *range(4608, max_tokens + 1, 512),
    ]
    return [size for size in sizes if size <= max_tokens]


def _by_memory(memory_mib: float | None, tp: int) -> tuple[int, int]:
    if memory_mib is None:
        return _UNKNOWN_MEMORY
    row = next(row for row in _BY_MEMORY if memory_mib < row[0])
    return row[1], row[3] if tp >= _LARGE_TP else row[2]


def _reserved_mib(chunk: int, graph: int, ranks: int, *, large: bool) -> float:
    """Return the memory kept for activations and graphs."""
    tokens = chunk if chunk > 0 else MAX_PREFILL_TOKENS
    reserved = (
        _RESERVED_MIB
        + _MIB_PER_TOKEN * max(tokens, _FEWEST_TOKENS)
        + _MIB_PER_RANK * ranks
        + _MIB_PER_DECODE_REQUEST * graph
        + _MIB_PER_PREFILL_GRAPH * len(prefill_graph_sizes(max(chunk, 0)))
    )
    return max(reserved, _LARGE_GPU_RESERVED_MIB) if large else reserved
