"""From a network and the tokens of a step to the operations one tensor-parallel rank runs."""

from dataclasses import dataclass

from hwmodels.dtypes import KV_BYTES, WEIGHT_BYTES
from hwmodels.ops import Collective, Elementwise, ExpertGemm, Gemm, Op, Sampling
from twin.errors import InputError
from twin.llm.arch import ModelArch, MoeArch
from twin.llm.attention_layers import AttentionLayers
from twin.llm.stages import WHOLE, Ends
from twin.step import BatchShape

_ACTIVATION_BYTES = 2  # bf16 between layers
_VOCAB_PAD = 64  # vLLM pads the vocabulary to this before sharding


@dataclass(frozen=True, slots=True)
class Precision:
    """How weights are stored, products computed and KV stored: bf16, fp8, int8, int4, mxfp4.

    mxfp4 is stored for expert weights alone (gpt-oss model card); everything else is bf16 then.
    The router and the output head stay bf16 in quantised checkpoints.
    """

    weight_dtype: str = "bf16"
    compute_dtype: str = "bf16"
    kv_dtype: str = "bf16"

    def __post_init__(self) -> None:
        for dtype, table in (
            (self.weight_dtype, WEIGHT_BYTES),
            (self.compute_dtype, WEIGHT_BYTES),
            (self.kv_dtype, KV_BYTES),
        ):
            if dtype not in table:
                raise InputError(
                    f"unknown dtype {dtype!r}", remedy="choose one of " + ", ".join(table)
                )

    @property
    def linear(self) -> tuple[str, str]:
        """(compute, weight) dtype of the dense layers."""
        if self.weight_dtype == "mxfp4":
            return "bf16", "bf16"
        return self.compute_dtype, self.weight_dtype

    def of(self, arch: ModelArch, role: str) -> tuple[str, str]:
        """(compute, weight) dtype of a matrix role, which the checkpoint may keep in bf16."""
        kept = self.weight_dtype == arch.checkpoint_dtype and role in arch.unquantized
        return ("bf16", "bf16") if kept else self.linear


def check_shards(arch: ModelArch, tp: int) -> None:
    """Raise `InputError` unless `tp` ranks can share the attention heads."""
    if tp < 1 or arch.num_heads % tp:
        raise InputError(
            f"tensor parallelism {tp} does not divide the {arch.num_heads} heads of {arch.name}",
            remedy="choose a divisor",
        )


def dense_ops(
    arch: ModelArch, precision: Precision, tp: int, num_tokens: int, sampled_seqs: int
) -> list[Op]:
    """Return all operations of a pass but attention itself, for one rank."""
    return body_ops(arch, precision, tp, num_tokens) + head_ops(arch, tp, sampled_seqs)


def attention_ops(arch: ModelArch, precision: Precision, tp: int, shape: BatchShape) -> list[Op]:
    """Return the attention operations of a batch, for one rank."""
    check_shards(arch, tp)
    layers = AttentionLayers(arch, precision.kv_dtype, tp)
    found: list[Op] = []
    for index, (query, kv) in enumerate(shape.prefill):
        found += layers.prefill(query, kv, joined=index > 0)
    if shape.decode_seqs:
        found += layers.decode(
            shape.decode_seqs, shape.decode_kv_tokens, shape.decode_kv_max_tokens
        )
    return found


def body_ops(
    arch: ModelArch,
    precision: Precision,
    tp: int,
    num_tokens: int,
    ep: int = 1,
    fused_norms: bool = False,
    ends: Ends = WHOLE,
) -> list[Op]:
    """Return the operations that see every token: embedding, projections, MLP, all-reduces.

    `ep` of the `tp` ranks share out whole experts; every rank sees all tokens, as under tensor
    parallelism, so the all-reduces stay. `fused_norms`: see `twin.llm.fusions`. `ends`: which
    ends of the network these layers include.
    """
    check_shards(arch, tp)
    layers, tokens = arch.num_layers, num_tokens
    hidden_bytes = float(tokens * arch.hidden_size * _ACTIVATION_BYTES)
    found: list[Op] = [Elementwise(2 * hidden_bytes)] if ends.first else []  # embedding look-up
    found += _projections(arch, precision, tp, tokens)
    found += _small_kernels(arch, precision, tp, tokens, fused_norms)
    sparse = arch.moe.num_moe_layers if arch.moe else 0
    if layers > sparse:
        linear = precision.of(arch, "mlp")
        found += _mlp(arch, linear, tp, tokens, (arch.intermediate_size, layers - sparse))
    if arch.moe and sparse:
        found += _experts(arch, precision, (tp, ep), tokens)
    if ends.last:
        found.append(Elementwise(4 * hidden_bytes))  # final norm with its residual
    if tp > 1:
        # After attention and after the MLP of each layer, and once for the sharded embedding.
        found.append(Collective("all_reduce", hidden_bytes, tp, repeat=2 * layers + ends.first))
    return found


def head_ops(arch: ModelArch, tp: int, sampled_seqs: int) -> list[Op]:
    """Return output head, gather of its shards and sampling, for the sequences that sample.

    Tied embeddings change the memory the weights take, not what is computed.
    """
    if sampled_seqs <= 0:
        return []
    vocab = -(-arch.vocab_size // _VOCAB_PAD) * _VOCAB_PAD
    found: list[Op] = [Gemm(sampled_seqs, -(-vocab // tp), arch.hidden_size)]
    if tp > 1:
        logits_bytes = float(sampled_seqs * vocab * _ACTIVATION_BYTES)
        found.append(Collective("all_gather", logits_bytes, tp))
    found.append(Sampling(sampled_seqs, arch.vocab_size))
    return found


def _projections(arch: ModelArch, precision: Precision, tp: int, tokens: int) -> list[Op]:
    """Attention's weight products; `compute, weight` dtype and layers are common to all."""
    hidden, heads, mla = arch.hidden_size, arch.num_heads // tp, arch.mla
    if mla is None:
        kv_heads = max(1, -(-arch.num_kv_heads // tp))
        shapes = [
            ((heads + 2 * kv_heads) * arch.head_dim, hidden),
            (hidden, heads * arch.head_dim),
        ]
    else:
        query_width = heads * (mla.qk_nope_dim + mla.qk_rope_dim)
        latent = mla.kv_lora_rank + mla.qk_rope_dim
        if mla.q_lora_rank:  # both down-projections are one product, replicated over ranks
            shapes = [(mla.q_lora_rank + latent, hidden), (query_width, mla.q_lora_rank)]
        else:
            shapes = [(query_width, hidden), (latent, hidden)]
        # Prefill expands the latent; absorbed decode multiplies queries and outputs by the same
        # weights: equal work a token.
        shapes.append((heads * (mla.qk_nope_dim + mla.v_dim), mla.kv_lora_rank))
        shapes.append((hidden, heads * mla.v_dim))
    linear = precision.of(arch, "attention")
    return [Gemm(tokens, n, k, *linear, arch.num_layers) for n, k in shapes]


def _small_kernels(
    arch: ModelArch, precision: Precision, tp: int, tokens: int, fused_norms: bool
) -> list[Op]:
    """Norms, rotary embedding and KV write of every layer.

    The KV write's bytes are in the attention form, its launch is here. 8-bit products need
    their input quantised: fused into norms and activation, one kernel more for attention's output.
    """
    heads = arch.num_heads // tp
    kv_heads = max(1, -(-arch.num_kv_heads // tp))
    norm = 2 * 4 * arch.hidden_size * _ACTIVATION_BYTES  # input, residual in; both out; twice
    if arch.mla is None:
        rotary_width, kernels = (heads + kv_heads) * arch.head_dim, 4
    else:
        rotary_width, kernels = (heads + 1) * arch.mla.qk_rope_dim, 6  # a norm for each latent
        norm += 2 * (arch.mla.q_lora_rank + arch.mla.kv_lora_rank) * _ACTIVATION_BYTES
    moved = norm + 2 * rotary_width * _ACTIVATION_BYTES
    kernels += arch.extra_kernels
    if arch.qk_norm and arch.mla is None:  # queries and keys are taken out, and normed
        kernels += 4
        moved += 4 * rotary_width * _ACTIVATION_BYTES
    if precision.of(arch, "attention")[0] in ("fp8", "int8"):
        kernels += 1
        moved += heads * arch.head_dim * (_ACTIVATION_BYTES + 1)
    if fused_norms:  # their bytes are moved all the same
        kernels -= 2
    return [Elementwise(float(tokens * moved), kernels, arch.num_layers)]


def _mlp(
    arch: ModelArch, linear: tuple[str, str], tp: int, tokens: int, size: tuple[int, int]
) -> list[Op]:
    """A dense MLP of (width, layers): up (and gate), activation, down."""
    width, layers = -(-size[0] // tp), size[1]
    columns = 2 * width if arch.gated_mlp else width
    return [
        Gemm(tokens, columns, arch.hidden_size, *linear, layers),
        Elementwise(float(tokens * (columns + width) * _ACTIVATION_BYTES), 1, layers),
        Gemm(tokens, arch.hidden_size, width, *linear, layers),
    ]


def _experts(
    arch: ModelArch, precision: Precision, ranks: tuple[int, int], tokens: int
) -> list[Op]:
    """Router, routed experts over (tp, ep) ranks, and the shared expert.

    With ep 1 every rank holds a slice of each expert; else it holds whole ones (sliced over
    tp / ep ranks) and computes its even share of the routed tokens.
    """
    moe, (tp, ep) = _moe_of(arch), ranks
    hidden, layers = arch.hidden_size, moe.num_moe_layers
    width = -(-moe.expert_intermediate // max(1, tp // ep))
    columns = 2 * width if arch.gated_mlp else width
    local = moe.num_experts // ep
    routed = -(-tokens * moe.experts_per_token * local // moe.num_experts)
    # Top-k, sorting by expert, activation, and the weighted sum of each token's experts.
    moved = routed * (columns + width + hidden) + tokens * (hidden + 2 * moe.num_experts)
    found: list[Op] = [
        Gemm(tokens, moe.num_experts, hidden, repeat=layers),
        ExpertGemm(
            tokens, hidden, width, columns, moe.num_experts, local,
            moe.experts_per_token, precision.compute_dtype, precision.weight_dtype, layers,
        ),
        Elementwise(float(moved * _ACTIVATION_BYTES), 4, layers),
    ]  # fmt: skip
    if moe.shared_intermediate:
        linear = precision.of(arch, "shared_expert")
        found += _mlp(arch, linear, tp, tokens, (moe.shared_intermediate, layers))
    return found


def _moe_of(arch: ModelArch) -> MoeArch:
    if arch.moe is None:
        raise ValueError(f"{arch.name} has no experts")
    return arch.moe
