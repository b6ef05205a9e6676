"""`KvLayout`: where the bytes of a KV cache lie.

Two arrangements of pools: `per_layer`, a tensor a layer that holds first all keys and then all
values (`[2, blocks, ...]`), and `cross_layer`, one tensor whose blocks hold all layers
(`[blocks, layers, 2, ...]`, as engines lay KV out that is to be moved block by block). Within a
block tokens come first (`NHD`) or heads (`HND`).
"""

from dataclasses import dataclass
from typing import Literal, get_args

from hwmodels.memory.touched import Segments
from hwmodels.memory.units import PAGE_BYTES

Arrangement = Literal["NHD", "HND"]
Pools = Literal["per_layer", "cross_layer"]
Order = Literal["compact", "scattered"]


@dataclass(frozen=True, slots=True)
class KvLayout:
    """The KV pool of one GPU.

    Attributes:
        block_tokens: tokens a block.
        element_bytes: of one stored number; 0.5 for 4 bits.
        kv_heads, head_dim: of one layer on this rank.
        num_layers: layers that keep KV on this rank.
        num_blocks: blocks of the pool.
        arrangement: NHD or HND.
        pools: a tensor a layer, or one over all of them.
        order: blocks that are read together lie side by side (the lowest free one is always
            taken), or anywhere in the pool.
        tensors: 2 for keys and values; 1 for a latent that is both.
        group_elements: numbers that share a scale stored apart; 0: none.
        scale_bytes: what a group stores apart (scale, and zero point if any).
    """

    block_tokens: int
    element_bytes: float
    kv_heads: int
    head_dim: int
    num_layers: int
    num_blocks: int
    arrangement: Arrangement = "NHD"
    pools: Pools = "per_layer"
    order: Order = "compact"
    tensors: int = 2
    group_elements: int = 0
    scale_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("block_tokens", "kv_heads", "head_dim", "num_layers", "num_blocks", "tensors"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name, choices in (("arrangement", Arrangement), ("pools", Pools), ("order", Order)):
            if getattr(self, name) not in get_args(choices):
                raise ValueError(f"{name} is {getattr(self, name)!r}, not one of {choices}")
        if (self.head_dim * self.element_bytes) % 1:
            raise ValueError(
                f"a row of {self.head_dim} numbers of {self.element_bytes} B is no whole byte"
            )
        if self.group_elements and self.head_dim % self.group_elements:
            raise ValueError(f"groups of {self.group_elements} do not divide {self.head_dim}")

    @property
    def row_bytes(self) -> int:
        """Numbers of one token and head, scales apart."""
        return int(self.head_dim * self.element_bytes)

    @property
    def row_scale_bytes(self) -> int:
        """Scales of one token and head."""
        return self.scale_bytes * (self.head_dim // self.group_elements) if self.has_scales else 0

    @property
    def has_scales(self) -> bool:
        """Whether scales are stored apart."""
        return self.group_elements > 0 and self.scale_bytes > 0

    @property
    def tensor_block_bytes(self) -> int:
        """Keys (or values) of one block in one layer, scales apart."""
        return self.block_tokens * self.kv_heads * self.row_bytes

    @property
    def layer_block_bytes(self) -> int:
        """Keys and values of one block in one layer, scales apart."""
        return self.tensors * self.tensor_block_bytes

    @property
    def scale_block_bytes(self) -> int:
        """Scales of one block in one layer."""
        return self.tensors * self.block_tokens * self.kv_heads * self.row_scale_bytes

    @property
    def block_bytes(self) -> int:
        """One block over all layers, with its scales."""
        return self.num_layers * (self.layer_block_bytes + self.scale_block_bytes)

    @property
    def token_bytes(self) -> float:
        """One token over all layers, with its scales."""
        return self.block_bytes / self.block_tokens

    @property
    def pool_bytes(self) -> int:
        """The whole pool."""
        return self.num_blocks * self.block_bytes

    @property
    def slab_bytes(self) -> int:
        """What one attention kernel can reach into: its layer's tensor, or the whole pool."""
        return self.pool_bytes // (self.num_layers if self.pools == "per_layer" else 1)

    @property
    def fragment_bytes(self) -> int:
        """The largest piece of one block that lies in one place."""
        if self.pools == "per_layer":
            return self.tensor_block_bytes
        return self.num_layers * self.layer_block_bytes

    @property
    def bytes_per_page_visit(self) -> int:
        """What a kernel reads of one block before it goes to another place."""
        return self.tensor_block_bytes if self.pools == "per_layer" else self.layer_block_bytes

    @property
    def places_per_block(self) -> int:
        """In how many places a kernel finds a block, scales apart."""
        return self.tensors if self.pools == "per_layer" else 1

    def address(self, layer: int, block: int, tensor: int, token: int, head: int) -> int:
        """Return the byte at which one row begins, counted from the start of the pool.

        Layers of their own begin on a page, as allocations do.
        """
        place = (
            token * self.kv_heads + head
            if self.arrangement == "NHD"
            else head * self.block_tokens + token
        )
        piece = self.pieces(layer)[tensor if self.pools == "per_layer" else 0]
        inner = tensor * self.tensor_block_bytes if self.pools == "cross_layer" else 0
        return piece.start + block * piece.stride + inner + place * self.row_bytes

    def pieces(self, layer: int = 0) -> tuple[Segments, ...]:
        """Return where one layer's kernel reads: the pieces of all blocks, by place."""
        codes = self.layer_block_bytes
        if self.pools == "cross_layer":
            stride = self.num_layers * codes
            return (Segments(self.num_blocks, stride, codes, layer * codes),)
        part = self.tensor_block_bytes
        slab = -(-self.num_blocks * codes // PAGE_BYTES) * PAGE_BYTES
        starts = (layer * slab + tensor * self.num_blocks * part for tensor in range(self.tensors))
        return tuple(Segments(self.num_blocks, part, part, start) for start in starts)

    def rows_of_head(self, head: int = 0) -> Segments:
        """Return the rows of one head in one tensor of one block, from the block's start."""
        if self.arrangement == "HND":
            start = head * self.block_tokens * self.row_bytes
            return Segments(self.block_tokens, self.row_bytes, self.row_bytes, start)
        stride = self.kv_heads * self.row_bytes
        return Segments(self.block_tokens, stride, self.row_bytes, head * self.row_bytes)

    def scales_of_head(self, head: int = 0) -> Segments | None:
        """Return one head's scales in one tensor of one block; None: none are stored apart."""
        width = self.row_scale_bytes
        if not width:
            return None
        if self.arrangement == "HND":
            return Segments(self.block_tokens, width, width, head * self.block_tokens * width)
        return Segments(self.block_tokens, self.kv_heads * width, width, head * width)
