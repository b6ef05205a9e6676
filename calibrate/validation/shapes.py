"""`RankShapes`: what one rank's layers look like, and which scenarios can be tried at all."""

from dataclasses import dataclass, replace

from calibrate.validation.batch import Batch
from hwmodels.dtypes import KV_BYTES, WEIGHT_BYTES
from twin.errors import InputError
from twin.llm.lowering import Precision
from twin.scenario import Scenario

HEAD_DIMS = (64, 128, 256)
BLOCK_TOKENS = (8, 16, 32, 64, 128, 256)
_FORMATS = (("bf16", "bf16"), ("fp8", "fp8"), ("bf16", "int4"))
_VOCAB_PAD = 64  # as the lowering pads it

_SMALL_WIDTH, _SMALL_DIM, _SMALL_VOCAB = 128, 64, 256
_SMALL_CONTEXT, _SMALL_QUERY = 40, 6


@dataclass(frozen=True, slots=True)
class RankShapes:
    """One tensor-parallel rank of a dense network.

    Attributes:
        attention, mlp: (compute, weight) dtype of their products.
        int4_group: weights along k that share a scale.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    qk_norm: bool
    block_tokens: int
    kv_dtype: str
    attention: tuple[str, str] = ("bf16", "bf16")
    mlp: tuple[str, str] = ("bf16", "bf16")
    int4_group: int = 128

    @property
    def qkv_columns(self) -> int:
        """Columns of the packed query, key and value product."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def layer_bytes(self) -> float:
        """Weights of one layer."""
        attention = self.hidden * (self.qkv_columns + self.heads * self.head_dim)
        mlp = 3 * self.hidden * self.intermediate
        return attention * WEIGHT_BYTES[self.attention[1]] + mlp * WEIGHT_BYTES[self.mlp[1]]

    @property
    def kv_block_bytes(self) -> float:
        """One KV block of one layer."""
        width = 2 * self.kv_heads * self.head_dim
        return self.block_tokens * width * KV_BYTES[self.kv_dtype]


def rank_shapes(scenario: Scenario) -> RankShapes:
    """Return the shapes that one rank of a scenario runs.

    Raises:
        InputError: the kernels here cannot run its network or its policy.
    """
    _check(scenario)
    arch, precision = scenario.arch, scenario.precision
    tp = scenario.file.parallelism.tp
    vocab = -(-arch.vocab_size // _VOCAB_PAD) * _VOCAB_PAD
    return RankShapes(
        layers=arch.num_layers,
        hidden=arch.hidden_size,
        heads=arch.num_heads // tp,
        kv_heads=max(1, -(-arch.num_kv_heads // tp)),
        head_dim=arch.head_dim,
        intermediate=-(-arch.intermediate_size // tp),
        vocab=-(-vocab // tp),
        qk_norm=arch.qk_norm,
        block_tokens=scenario.policy.block_size,
        kv_dtype=precision.kv_dtype,
        attention=precision.of(arch, "attention"),
        mlp=precision.of(arch, "mlp"),
    )


def shrunk(shapes: RankShapes) -> RankShapes:
    """Return shapes of the same kind that an interpreter can run: for dry runs."""
    return replace(
        shapes,
        layers=2,
        hidden=_SMALL_WIDTH,
        heads=2,
        kv_heads=1,
        head_dim=_SMALL_DIM,
        intermediate=_SMALL_WIDTH,
        vocab=_SMALL_VOCAB,
        int4_group=64,
    )


def shrunk_batch(batch: Batch) -> Batch:
    """Return a batch of the same kind with a few short requests."""
    decodes = tuple(min(kv, _SMALL_CONTEXT) for kv in batch.decodes[:2])
    chunks = []
    for query, kv in batch.chunks[:1]:
        asked = min(query, _SMALL_QUERY)
        chunks.append((asked, asked + min(kv - query, _SMALL_CONTEXT - asked)))
    return Batch(decodes, tuple(chunks), min(batch.sampled, len(decodes) + len(chunks)))


def _check(scenario: Scenario) -> None:
    arch, file, where = scenario.arch, scenario.file, scenario.file.name
    group = -(-arch.num_heads // max(1, arch.num_kv_heads))
    refusals = (
        (len(scenario.pools) > 1, "replicas of several pools", "validate one kind at a time"),
        (file.parallelism.pp > 1, "pipeline stages", "set parallelism.pp to 1"),
        (arch.moe is not None, "networks with experts", "name a dense network"),
        (arch.mla is not None, "latent attention", "name a network with KV heads"),
        (arch.sliding_window is not None, "sliding windows", "name a network without"),
        (arch.num_kv_layers is not None, "linear attention", "name a network without"),
        (not arch.gated_mlp, "MLPs without a gate", "name a network with one"),
        (arch.head_dim not in HEAD_DIMS, f"heads of {arch.head_dim}", f"one of {HEAD_DIMS}"),
        (group > HEAD_DIMS[0], f"{group} heads to a KV head", "at most 64 to each"),
        (
            scenario.policy.block_size not in BLOCK_TOKENS,
            f"KV blocks of {scenario.policy.block_size} tokens",
            "set policy.block_size to a power of two from 8 to 256",
        ),
    )
    for refused, what, remedy in refusals:
        if refused:
            raise InputError(f"{what} cannot be run on the GPU here", where=where, remedy=remedy)
    _check_formats(arch.scale_block is not None, scenario.precision, where)


def _check_formats(block_scaled: bool, precision: Precision, where: str) -> None:
    pair = (precision.compute_dtype, precision.weight_dtype)
    if pair not in _FORMATS or (block_scaled and pair != ("bf16", "bf16")):
        scaled = " scaled by block" if block_scaled else ""
        raise InputError(
            f"{pair[1]} weights{scaled}, multiplied in {pair[0]}, cannot be run on the GPU here",
            where=where,
            remedy="use bf16, fp8 with a scale a tensor on a GPU that has it, or int4",
        )
