"""Every weight matrix of a network, and the bytes of them that one GPU holds.

The list follows vLLM's layout (0.33.0, `vllm/model_executor/layers`): column- and row-parallel
matrices are cut by tensor parallelism, KV projections are replicated once there are more ranks
than KV heads, embeddings are padded to a multiple of 64 rows and cut, norms, routers and MLA's
down-projections lie whole on every rank.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from twin.llm.arch import MlaArch, ModelArch, MoeArch
from twin.llm.quantization import stored_bytes, weight_dtype

# vLLM pads the vocabulary of embedding and LM head to this multiple before cutting it
# (DEFAULT_VOCAB_PADDING_SIZE).
VOCAB_PADDING = 64

_QUANTIZABLE = frozenset({"attention", "mlp", "expert", "shared_expert"})


@dataclass(frozen=True, slots=True)
class Matrix:
    """`copies` matrices of rows (outputs) × columns (inputs); vectors have one column.

    role: embedding, lm_head, attention, mlp, expert, shared_expert, router, norm or bias; the
        middle four may be quantised.
    split: how ranks share it: "tp" evenly, "kv" by KV heads, "vocab" padded then evenly,
        "expert" over max(tp, ep) ranks, "whole" on each.
    """

    role: str
    rows: int
    columns: int
    split: str = "whole"
    copies: int = 1

    @property
    def elements(self) -> int:
        """Numbers in all copies."""
        return self.rows * self.columns * self.copies


def parameter_count(arch: ModelArch) -> int:
    """Return the number of parameters, tied embeddings counted once."""
    return sum(count * m.elements for count, m in _whole(arch))


def weights_bytes(
    arch: ModelArch, quantization: str | None = None, tp: int = 1, pp: int = 1, ep: int = 1
) -> int:
    """Return weight bytes on the fullest GPU.

    Args:
        arch: the network.
        quantization: None: as the checkpoint; "none", fp8, int8, int4: see `weight_dtype`.
        tp: tensor-parallel ranks.
        pp: pipeline stages; the fullest has ceil(layers / pp) layers, MoE ones first, and the
            LM head.
        ep: ranks that experts are dealt out to.
    """
    dtype = weight_dtype(arch, quantization)
    layers = -(-arch.num_layers // pp)
    moe_layers = min(arch.moe.num_moe_layers, layers) if arch.moe else 0
    share = _Share(arch, dtype, tp, ep)
    total = share.bytes_of(_stage(arch, layers, moe_layers, first=pp == 1))
    if arch.checkpoint_bytes is not None and dtype == arch.checkpoint_dtype:
        # The published checkpoint mixes formats in ways the list above doesn't know: keep the
        # split over ranks and take the sum from the checkpoint.
        total *= arch.checkpoint_bytes / _Share(arch, dtype, 1, 1).bytes_of(_whole(arch))
    return round(total)


def rotary_table_bytes(arch: ModelArch) -> int:
    """Return bytes of the cosine and sine table that every rank keeps.

    vLLM builds it for the network's whole `max_position`, whatever max_model_len is, in the
    weights' 16-bit type: 250 MiB for Mistral-Nemo's 1,024,000 positions.
    """
    rope_dim = arch.mla.qk_rope_dim if arch.mla else arch.rope_dim or arch.head_dim
    return arch.max_position * rope_dim * 2


@dataclass(frozen=True, slots=True)
class _Share:
    """What one rank holds of a list of matrices."""

    arch: ModelArch
    dtype: str
    tp: int
    ep: int

    def bytes_of(self, matrices: Iterable[tuple[int, Matrix]]) -> float:
        """Return bytes on one rank of (how often, matrix) pairs, scales included."""
        return sum(count * self._matrix_bytes(matrix) for count, matrix in matrices)

    def _matrix_bytes(self, matrix: Matrix) -> float:
        quantized = matrix.role in _QUANTIZABLE and matrix.role not in self.arch.unquantized
        dtype = self.dtype if quantized else "bf16"
        rows = matrix.rows * matrix.copies * self._fraction(matrix)
        return stored_bytes(rows, matrix.columns, dtype, self.arch.scale_block)

    def _fraction(self, matrix: Matrix) -> float:
        if matrix.split == "whole":
            return 1.0
        if matrix.split == "vocab":
            padded = -(-matrix.rows // VOCAB_PADDING) * VOCAB_PADDING
            return -(-padded // self.tp) / matrix.rows
        if matrix.split == "kv":
            return 1 / min(self.tp, self.arch.num_kv_heads)
        return 1 / (max(self.tp, self.ep) if matrix.split == "expert" else self.tp)


def _whole(arch: ModelArch) -> list[tuple[int, Matrix]]:
    moe_layers = arch.moe.num_moe_layers if arch.moe else 0
    return _stage(arch, arch.num_layers, moe_layers, first=True)


def _stage(
    arch: ModelArch, layers: int, moe_layers: int, *, first: bool
) -> list[tuple[int, Matrix]]:
    """Return (how often, matrix) of a last pipeline stage; `first`: it is the only one."""
    pairs = [(1, matrix) for matrix in _edges(arch, first=first)]
    pairs += [(layers, matrix) for matrix in _attention_block(arch)]
    pairs += [(layers - moe_layers, matrix) for matrix in _mlp(arch, arch.intermediate_size, "mlp")]
    if arch.moe:
        pairs += [(moe_layers, matrix) for matrix in _moe(arch, arch.moe)]
    return pairs


def _edges(arch: ModelArch, *, first: bool) -> list[Matrix]:
    """Final norm, LM head and, on a first stage, the embedding (which a tied head reuses)."""
    matrices = [Matrix("norm", arch.hidden_size, 1)]
    if first:
        matrices.append(Matrix("embedding", arch.vocab_size, arch.hidden_size, "vocab"))
    if not (first and arch.tied_embeddings):
        matrices.append(Matrix("lm_head", arch.vocab_size, arch.hidden_size, "vocab"))
    return matrices


def _attention_block(arch: ModelArch) -> list[Matrix]:
    """One layer's attention with the layer's norms."""
    matrices = [Matrix("norm", arch.hidden_size, 1, copies=arch.norms_per_layer)]
    if arch.mla:
        return matrices + _mla(arch, arch.mla)
    hidden, q_rows = arch.hidden_size, arch.num_heads * arch.head_dim
    kv_rows = 2 * arch.num_kv_heads * arch.head_dim
    matrices += [
        Matrix("attention", q_rows, hidden, "tp"),
        Matrix("attention", kv_rows, hidden, "kv"),
        Matrix("attention", hidden, q_rows, "tp"),
    ]
    if arch.qkv_bias:
        matrices += [Matrix("bias", q_rows, 1, "tp"), Matrix("bias", kv_rows, 1, "kv")]
    if arch.o_bias:
        matrices.append(Matrix("bias", hidden, 1))
    if arch.qk_norm:
        matrices.append(Matrix("norm", arch.head_dim, 1, copies=2))
    if arch.attention_sinks:
        matrices.append(Matrix("bias", arch.num_heads, 1, "tp"))
    return matrices


def _mla(arch: ModelArch, mla: MlaArch) -> list[Matrix]:
    hidden, heads = arch.hidden_size, arch.num_heads
    q_rows = heads * (mla.qk_nope_dim + mla.qk_rope_dim)
    matrices = [
        Matrix("attention", mla.kv_lora_rank + mla.qk_rope_dim, hidden),
        Matrix("norm", mla.kv_lora_rank, 1),
        Matrix("attention", heads * (mla.qk_nope_dim + mla.v_dim), mla.kv_lora_rank, "tp"),
        Matrix("attention", hidden, heads * mla.v_dim, "tp"),
    ]
    if mla.q_lora_rank:
        matrices += [
            Matrix("attention", mla.q_lora_rank, hidden),
            Matrix("norm", mla.q_lora_rank, 1),
            Matrix("attention", q_rows, mla.q_lora_rank, "tp"),
        ]
    else:
        matrices.append(Matrix("attention", q_rows, hidden, "tp"))
    return matrices


def _mlp(arch: ModelArch, width: int, role: str) -> list[Matrix]:
    up_rows = (2 if arch.gated_mlp else 1) * width
    matrices = [
        Matrix(role, up_rows, arch.hidden_size, "tp"),
        Matrix(role, arch.hidden_size, width, "tp"),
    ]
    if arch.mlp_bias:
        matrices += [Matrix("bias", up_rows, 1, "tp"), Matrix("bias", arch.hidden_size, 1)]
    return matrices


def _moe(arch: ModelArch, moe: MoeArch) -> list[Matrix]:
    hidden, experts = arch.hidden_size, moe.num_experts
    up_rows = (2 if arch.gated_mlp else 1) * moe.expert_intermediate
    matrices = [
        Matrix("router", experts, hidden),
        Matrix("expert", up_rows, hidden, "expert", experts),
        Matrix("expert", hidden, moe.expert_intermediate, "expert", experts),
    ]
    if moe.router_bias:
        matrices.append(Matrix("bias", experts, 1))
    if arch.mlp_bias:
        matrices += [
            Matrix("bias", up_rows, 1, "expert", experts),
            Matrix("bias", hidden, 1, "expert", experts),
        ]
    if moe.shared_intermediate:
        matrices += _mlp(arch, moe.shared_intermediate, "shared_expert")
    if moe.shared_gate:
        matrices.append(Matrix("router", 1, hidden))
    return matrices
