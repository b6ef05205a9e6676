"""Operations a forward pass asks for, what they cost, and who can tell."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Bound(Enum):
    """What limits an operation. Steps are told by the first four (`twin.llm.op_sum`)."""

    COMPUTE = "compute"
    HBM = "hbm"
    LINK = "link"
    LAUNCH = "launch"
    TLB = "tlb"


class Source(Enum):
    """How a duration was obtained (most to least trusted)."""

    TABLE = "table"
    INTERPOLATED = "interpolated"
    PHYSICS = "physics"
    EXTRAPOLATED = "extrapolated"


@dataclass(frozen=True, slots=True)
class Gemm:
    """`repeat` products (m×k)·(k×n); `weight_dtype` is how the k×n operand is stored.

    dtypes: bf16, fp8, int8, int4, mxfp4. `compute_dtype` names the tensor-core path.
    """

    m: int
    n: int
    k: int
    compute_dtype: str = "bf16"
    weight_dtype: str = "bf16"
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class ExpertGemm:
    """Grouped expert products of one MoE projection pair on one rank, over `repeat` layers.

    `tokens` enter the layer, each takes `experts_per_token` of `num_experts` experts (global
    counts); `local_experts` live on this rank with `gated_n` = columns of the first projection
    (gate and up together) and `intermediate` rows of the second.
    """

    tokens: int
    hidden: int
    intermediate: int
    gated_n: int
    num_experts: int
    local_experts: int
    experts_per_token: int
    compute_dtype: str = "bf16"
    weight_dtype: str = "bf16"
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class PrefillAttention:
    """Attention of one chunk: `query_tokens` at the end of `kv_tokens`; heads are per rank.

    `window` caps the KV each query sees (None: full causal). `qk_dim`/`v_dim` are per head.
    `joined`: the chunk runs in the kernel of another chunk of the step, so start-up isn't its.
    """

    query_tokens: int
    kv_tokens: int
    heads: int
    kv_heads: int
    qk_dim: int
    v_dim: int
    kv_dtype: str = "bf16"
    window: int | None = None
    repeat: int = 1
    joined: bool = False


@dataclass(frozen=True, slots=True)
class DecodeAttention:
    """Attention of `seqs` one-token queries over `kv_tokens` KV tokens in sum; heads per rank.

    `kv_max_tokens` is the longest. `kv_bytes_per_token` is what one layer reads per KV token on
    this rank (MLA reads its latent once, so it isn't 2·kv_heads·dim·elem there).
    """

    seqs: int
    kv_tokens: int
    kv_max_tokens: int
    heads: int
    kv_heads: int
    qk_dim: int
    v_dim: int
    kv_bytes_per_token: float
    kv_dtype: str = "bf16"
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Memory-bound small kernels (norm, rotary, activation, residual): `kernels` moving bytes."""

    num_bytes: float
    kernels: int = 1
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Collective:
    """A collective over `ranks` GPUs of one node.

    kind: all_reduce, all_gather, reduce_scatter, all_to_all, send_recv. `num_bytes` is the full
    buffer in the sense of NCCL's tests. `custom_allowed`: the engine's own all-reduce may serve it.
    """

    kind: str
    num_bytes: float
    ranks: int
    custom_allowed: bool = True
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling of `seqs` next tokens from logits over `vocab` columns."""

    seqs: int
    vocab: int


Op = Gemm | ExpertGemm | PrefillAttention | DecodeAttention | Elementwise | Collective | Sampling


@dataclass(frozen=True, slots=True)
class OpCost:
    """Seconds on the GPU (all repeats), what binds, how it was obtained, kernels launched."""

    seconds: float
    bound: Bound
    source: Source
    kernels: int = 1


class CostModel(Protocol):
    """Durations of one GPU type under one engine version.

    `cost` is pure. `launch_floor_s` is the host time needed to launch a step of `kernels`
    kernels, in a CUDA graph or eagerly: a step lasts at least that long.
    """

    def cost(self, op: Op) -> OpCost:
        """Return the cost of one operation."""
        ...

    def launch_floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return the least seconds a step of that many kernels takes to launch."""
        ...
