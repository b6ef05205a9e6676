"""How many KV blocks an engine finds room for: the memory identity of one GPU.

    KV = utilisation × total − weights − activation peak − non-torch − CUDA graphs

for vLLM. SGLang takes its share of what is free *before* loading, TensorRT-LLM of what is free
*after* it.
"""

from dataclasses import dataclass, replace

from twin.errors import InputError
from twin.llm.arch import ModelArch
from twin.llm.engine_version import ENGINES, default_gpu_memory_utilization, parse_version
from twin.llm.kv_cache import block_bytes, kv_bytes_per_token_per_gpu, window_saving
from twin.llm.overhead_model import (
    Overhead,
    OverheadParameters,
    StepShape,
    overhead_of,
    parameters_of,
)
from twin.llm.parallelism import Parallelism, tp_divides
from twin.llm.weights import rotary_table_bytes, weights_bytes

# TensorRT-LLM's `tokens_per_block` default.
TRTLLM_BLOCK_TOKENS = 32

# Up to here vLLM without chunked prefill profiles a whole prompt of max_model_len tokens; 0.5.4
# turned chunking on by default for long contexts.
_WHOLE_PROMPT_BEFORE = (0, 5, 4)


@dataclass(frozen=True, slots=True)
class CapacityQuery:
    """One engine on one kind of GPU.

    Attributes:
        arch: the network.
        total_memory_bytes: what the driver reports for one GPU (`visible_memory_bytes`).
        engine: vllm, sglang or trtllm.
        engine_version: as written anywhere ("0.15.1", "vLLM 0.9.x"); None: the newest known.
        gpu_memory_utilization: vLLM's share of all memory, SGLang's `mem_fraction_static`,
            TensorRT-LLM's `free_gpu_memory_fraction`; None: the engine's default.
        max_model_len: longest sequence; None: the network's own.
        max_num_batched_tokens, max_num_seqs: largest step; None: as in the measured runs.
        block_size: tokens a block.
        quantization: as in `EnginePolicy`; None: as the checkpoint.
        kv_cache_dtype: as in `EnginePolicy`.
        enforce_eager: no CUDA graphs, so no memory for them.
        weights_bytes: per GPU, as an engine's log states it; None: computed.
        free_after_load_bytes: TensorRT-LLM only, as its log states it; None: computed.
        dp: data-parallel ranks; they matter where experts are shared out over them.
    """

    arch: ModelArch
    total_memory_bytes: int
    engine: str = "vllm"
    engine_version: str | None = None
    tp: int = 1
    pp: int = 1
    ep: int = 1
    gpu_memory_utilization: float | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    block_size: int = 16
    quantization: str | None = None
    kv_cache_dtype: str = "auto"
    enforce_eager: bool = False
    weights_bytes: int | None = None
    free_after_load_bytes: int | None = None
    dp: int = 1


@dataclass(frozen=True, slots=True)
class KvCapacity:
    """What fits on one GPU, and the budget it follows from (bytes a GPU).

    Attributes:
        kv_blocks: blocks the engine reports; 0 if weights and overhead fill the budget.
        kv_tokens: kv_blocks × block size.
        usable_bytes: share of memory that is budgeted: utilisation × total.
        weights_bytes: with the rotary table, as engines' logs count them.
        kv_bytes: what is left for KV, never below 0.
        fits: the longest sequence fits.
        max_concurrency: sequences of max_model_len that fit at once.
        notes: assumptions a reader should know.
    """

    kv_blocks: int
    kv_tokens: int
    kv_bytes_per_token_per_gpu: int
    total_bytes: int
    usable_bytes: int
    weights_bytes: int
    activation_peak_bytes: int
    non_torch_bytes: int
    cuda_graph_bytes: int
    kv_bytes: int
    block_size: int
    max_model_len: int
    gpu_memory_utilization: float
    fits: bool
    max_concurrency: float
    notes: tuple[str, ...] = ()

    @property
    def overhead_bytes(self) -> int:
        """Budget that is neither weights nor KV."""
        return self.activation_peak_bytes + self.non_torch_bytes + self.cuda_graph_bytes

    @property
    def schedulable_blocks(self) -> int:
        """Blocks a scheduler can hand out: vLLM V1 keeps one as the null block."""
        return max(0, self.kv_blocks - 1)


def capacity(query: CapacityQuery, parameters: OverheadParameters | None = None) -> KvCapacity:
    """Return how much KV cache fits.

    Args:
        query: the deployment.
        parameters: overhead to use instead of the engine version's own (while fitting it).

    Raises:
        InputError: unknown engine, sizes the network does not allow, a utilisation outside
            (0, 1], or memory that is not positive.
    """
    _check(query)
    query = _with_defaults(query)
    notes: tuple[str, ...] = ()
    if parameters is None:
        parameters, notes = parameters_of(query.engine, query.engine_version)
    overhead = overhead_of(query.arch, parameters, step_shape(query))
    weights = per_gpu_weights(query)
    usable, free = _BUDGETS[query.engine](query, weights, overhead)
    per_block = block_bytes(query.arch, query.block_size, query.kv_cache_dtype, query.tp, query.pp)
    blocks = max(0, int(free // per_block))
    return _result(query, overhead, (usable, weights, free, blocks), notes)


def capacity_by_tp(
    query: CapacityQuery, tp_sizes: tuple[int, ...] = (1, 2, 4, 8)
) -> dict[int, KvCapacity]:
    """Return the capacity at each TP size that the network can be cut into."""
    return {tp: capacity(replace(query, tp=tp)) for tp in tp_sizes if tp_divides(query.arch, tp)}


def smallest_fitting_tp(
    query: CapacityQuery, tp_sizes: tuple[int, ...] = (1, 2, 4, 8)
) -> int | None:
    """Return the fewest GPUs on which one sequence of max_model_len fits; None: none does."""
    for tp, result in sorted(capacity_by_tp(query, tp_sizes).items()):
        if result.fits:
            return tp
    return None


def step_shape(query: CapacityQuery) -> StepShape:
    """Return the largest step that the engine profiles."""
    tokens = query.max_num_batched_tokens
    version = parse_version(query.engine_version)
    if tokens is None and query.engine == "vllm" and version and version < _WHOLE_PROMPT_BEFORE:
        tokens = max(2048, query.max_model_len or query.arch.max_position)
    return StepShape(query.tp, query.ep, query.max_num_seqs, tokens, not query.enforce_eager)


def _with_defaults(query: CapacityQuery) -> CapacityQuery:
    utilization = query.gpu_memory_utilization
    if utilization is None:
        utilization = default_gpu_memory_utilization(
            query.engine, query.engine_version, query.total_memory_bytes, query.tp * query.pp
        )
    return replace(
        query,
        gpu_memory_utilization=utilization,
        max_model_len=query.max_model_len or query.arch.max_position,
    )


def per_gpu_weights(query: CapacityQuery) -> int:
    """Return bytes of weights and rotary table on one GPU, or what the query states."""
    if query.weights_bytes is not None:
        return query.weights_bytes
    stored = weights_bytes(query.arch, query.quantization, query.tp, query.pp, query.ep)
    return stored + rotary_table_bytes(query.arch)


def _vllm_budget(query: CapacityQuery, weights: int, overhead: Overhead) -> tuple[float, float]:
    usable = (query.gpu_memory_utilization or 0.0) * query.total_memory_bytes
    return usable, usable - weights - overhead.total_bytes


def _sglang_budget(query: CapacityQuery, weights: int, overhead: Overhead) -> tuple[float, float]:
    """Pool = free before loading × mem_fraction_static − weights; the rest runs the step."""
    before_load = query.total_memory_bytes - overhead.non_torch_bytes
    usable = (query.gpu_memory_utilization or 0.0) * before_load
    return usable, usable - weights


def _trtllm_budget(query: CapacityQuery, weights: int, overhead: Overhead) -> tuple[float, float]:
    """Pool = fraction × (what is free once weights, activations and graphs are allocated)."""
    after_load = float(query.total_memory_bytes - weights) - overhead.total_bytes
    if query.free_after_load_bytes is not None:
        after_load = float(query.free_after_load_bytes)
    return after_load, (query.gpu_memory_utilization or 0.0) * after_load


_BUDGETS = {"vllm": _vllm_budget, "sglang": _sglang_budget, "trtllm": _trtllm_budget}


def _result(
    query: CapacityQuery,
    overhead: Overhead,
    budget: tuple[float, int, float, int],
    notes: tuple[str, ...],
) -> KvCapacity:
    usable, weights, free, blocks = budget
    longest = query.max_model_len or query.arch.max_position
    needed = -(-longest // query.block_size)
    return KvCapacity(
        kv_blocks=blocks,
        kv_tokens=blocks * query.block_size,
        kv_bytes_per_token_per_gpu=kv_bytes_per_token_per_gpu(
            query.arch, query.kv_cache_dtype, query.tp, query.pp
        ),
        total_bytes=query.total_memory_bytes,
        usable_bytes=int(usable),
        weights_bytes=weights,
        activation_peak_bytes=round(overhead.activation_peak_bytes),
        non_torch_bytes=round(overhead.non_torch_bytes),
        cuda_graph_bytes=round(overhead.cuda_graph_bytes),
        kv_bytes=max(0, int(free)),
        block_size=query.block_size,
        max_model_len=longest,
        gpu_memory_utilization=query.gpu_memory_utilization or 0.0,
        fits=blocks >= needed,
        max_concurrency=blocks / needed,
        notes=notes + _notes(query, longest),
    )


def _notes(query: CapacityQuery, longest: int) -> tuple[str, ...]:
    notes = list(query.arch.notes)
    saving = window_saving(query.arch, longest, query.max_num_batched_tokens or 2048)
    if saving > 1.005:
        notes.append(
            f"{query.arch.num_sliding_layers} of {query.arch.num_layers} layers see a window of "
            f"{query.arch.sliding_window} tokens and are counted as full attention; an engine "
            f"that frees what left the window holds {saving:.1f} times as many sequences of "
            f"{longest} tokens"
        )
    return tuple(notes)


def _check(query: CapacityQuery) -> None:
    if query.engine not in ENGINES:
        raise InputError(
            f"unknown engine {query.engine!r}", remedy="choose one of " + ", ".join(ENGINES)
        )
    if query.total_memory_bytes <= 0:
        raise InputError(
            f"GPU memory of {query.total_memory_bytes} bytes", remedy="give what one GPU has"
        )
    share = query.gpu_memory_utilization
    if share is not None and not 0 < share <= 1:
        raise InputError(
            f"gpu_memory_utilization is {share}", remedy="give a share above 0 and up to 1"
        )
    for name in ("max_model_len", "max_num_batched_tokens", "max_num_seqs", "block_size"):
        size = getattr(query, name)
        if size is not None and size < 1:
            raise InputError(f"{name} is {size}", remedy="give at least 1")
    spread = Parallelism(query.tp, query.pp, query.dp, query.ep)
    if query.ep > query.tp:
        # Experts may be dealt out over data-parallel replicas too: dp widens what ep may divide.
        spread = replace(spread, dp=query.ep // query.tp)
    spread.validate(query.arch)
