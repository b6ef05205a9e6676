"""A network's layers on the GPU with random weights: as many as fit, run again and again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrate.validation.batch import Batch
from calibrate.validation.paged_kv import LayerKv, plain_kv, quantised_kv
from calibrate.validation.products import (
    DenseProduct,
    Fp8Product,
    Product,
    WeightOnlyProduct,
    random_weight,
)
from calibrate.validation.shapes import RankShapes
from twin.errors import InputError

if TYPE_CHECKING:
    import torch

_MEMORY_SHARE = 0.8
"""Of the free memory, that weights and KV may take; the rest is for activations and graphs."""
_POOL_SHARE = 1.25
"""Blocks of the pool for each that the largest batch needs."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer's weights and KV."""

    qkv: Product
    out: Product
    gate_up: Product
    down: Product
    input_norm: "torch.Tensor"
    mlp_norm: "torch.Tensor"
    head_norm: "torch.Tensor"
    kv: LayerKv


@dataclass(frozen=True, slots=True)
class Network:
    """What every step of a validation runs through.

    Attributes:
        shapes: of one rank.
        layers: the distinct ones; the network has `shapes.layers`, which take them in turn.
        order: the pool's block numbers, shuffled.
        random: of everything drawn.
    """

    shapes: RankShapes
    layers: tuple[Layer, ...]
    embedding: "torch.Tensor"
    head: "torch.Tensor"
    cos: "torch.Tensor"
    sin: "torch.Tensor"
    order: "torch.Tensor"
    random: "torch.Generator"

    @property
    def dtype(self) -> "torch.dtype":
        """Of activations."""
        return self.embedding.dtype

    @property
    def device(self) -> "torch.device":
        """Where it is."""
        return self.embedding.device


def build_network(
    shapes: RankShapes, batches: Sequence[Batch], device: "torch.device", seed: int
) -> Network:
    """Return a network with room for the largest of some batches.

    Raises:
        InputError: not even one layer fits into the GPU's free memory.
    """
    import torch

    from kernels.rotary import rotary_tables

    # The interpreter gets bf16 wrong.
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float16
    random = torch.Generator(device).manual_seed(seed)
    blocks = pool_blocks(shapes, batches)
    most_tokens = max(batch.tokens for batch in batches)
    embedding, head = (
        torch.randn(shapes.vocab, shapes.hidden, generator=random, device=device, dtype=dtype)
        for _ in range(2)
    )
    count = min(shapes.layers, _distinct_layers(shapes, blocks, device))
    makes = _LayerMaker(shapes, blocks, most_tokens, random, dtype)
    layers = tuple(makes.layer() for _ in range(count))
    cos, sin = rotary_tables(
        max(max(batch.contexts) for batch in batches) + 1, shapes.head_dim, device=device
    )
    order = torch.randperm(blocks, generator=random, device=device)
    return Network(shapes, layers, embedding, head, cos, sin, order, random)


def pool_blocks(shapes: RankShapes, batches: Sequence[Batch]) -> int:
    """Return the KV blocks of a pool that holds any one of some batches."""
    most = max(blocks_of(shapes, batch) for batch in batches)
    return int(_POOL_SHARE * most) + 1


def blocks_of(shapes: RankShapes, batch: Batch) -> int:
    """Return the KV blocks that a batch's requests take; none are shared."""
    return sum(-(-kv // shapes.block_tokens) for kv in batch.contexts)


def _distinct_layers(shapes: RankShapes, blocks: int, device: "torch.device") -> int:
    """How many layers fit with their KV, the 16-bit copy of a quantised one set aside."""
    import torch

    if device.type != "cuda":
        return shapes.layers
    free, _ = torch.cuda.mem_get_info(device)
    room = _MEMORY_SHARE * free
    if shapes.kv_dtype != "bf16":
        room -= blocks * 4 * shapes.block_tokens * shapes.kv_heads * shapes.head_dim
    one = shapes.layer_bytes + blocks * shapes.kv_block_bytes
    fitting = int(room // one)
    l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
    if fitting < 1 or (fitting < shapes.layers and fitting * one < 4 * l2_bytes):
        raise InputError(
            f"{free / 1e9:.1f} GB are free on the GPU, one layer with its KV takes {one / 1e9:.1f}",
            remedy="lower policy.num_gpu_blocks or raise parallelism.tp",
        )
    return fitting


class _LayerMaker:
    """Makes layers of one network."""

    def __init__(
        self,
        shapes: RankShapes,
        blocks: int,
        most_tokens: int,
        random: "torch.Generator",
        dtype: "torch.dtype",
    ) -> None:
        import torch

        self._shapes, self._blocks, self._most_tokens = shapes, blocks, most_tokens
        self._random, self._dtype = random, dtype
        like = torch.empty(0, dtype=dtype, device=random.device)
        self._like = like
        self._copy = None if shapes.kv_dtype == "bf16" else plain_kv(shapes, blocks, like)

    def layer(self) -> Layer:
        """Return a layer with weights of its own."""
        s, hidden = self._shapes, self._shapes.hidden
        return Layer(
            qkv=self._product(s.attention, s.qkv_columns, hidden),
            out=self._product(s.attention, hidden, s.heads * s.head_dim, quantises=True),
            gate_up=self._product(s.mlp, 2 * s.intermediate, hidden),
            down=self._product(s.mlp, hidden, s.intermediate),
            input_norm=self._like.new_ones(hidden),
            mlp_norm=self._like.new_ones(hidden),
            head_norm=self._like.new_ones(s.head_dim),
            kv=self._kv(),
        )

    def _kv(self) -> LayerKv:
        if self._copy is None:
            return plain_kv(self._shapes, self._blocks, self._like)
        return quantised_kv(self._shapes, self._blocks, self._copy, self._random.device)

    def _product(
        self, dtypes: tuple[str, str], n: int, k: int, *, quantises: bool = False
    ) -> Product:
        weight = random_weight(n, k, self._dtype, self._random)
        if dtypes[1] == "fp8":
            return Fp8Product(weight, quantises=quantises, most_tokens=self._most_tokens)
        if dtypes[1] == "int4":
            return WeightOnlyProduct(weight, self._shapes.int4_group)
        return DenseProduct(weight)
