"""From a network and its KV dtype to where the bytes of the KV pool of one rank lie."""

from dataclasses import dataclass

from hwmodels.dtypes import KV_BYTES, KV_SCALE_BYTES
from hwmodels.memory.layout import Arrangement, KvLayout, Order, Pools
from twin.errors import InputError
from twin.llm.arch import ModelArch

INT4_GROUP = 32
INT4_SCALE_BYTES = 4
"""Of a group: a scale and a zero point of 16 bits each, 5.0 effective bits a number."""


@dataclass(frozen=True, slots=True)
class KvPool:
    """What is chosen about a KV pool beside the network.

    Attributes:
        kv_dtype: bf16, fp8, int8, int4 (with scales stored apart), or one with a scale a token and
            head, which is counted as if stored apart (vLLM puts it behind the row).
        block_tokens: tokens a block.
        num_blocks: of the pool.
        tp, pp: ranks and stages that share the network.
    """

    kv_dtype: str
    block_tokens: int
    num_blocks: int
    tp: int = 1
    pp: int = 1


def kv_layout(
    arch: ModelArch,
    pool: KvPool,
    *,
    pools: Pools = "per_layer",
    order: Order = "compact",
    arrangement: Arrangement = "NHD",
) -> KvLayout:
    """Return the layout of one rank's KV pool (of its fullest pipeline stage).

    Raises:
        InputError: the dtype does not fit the network's heads.
    """
    heads, dim, tensors = max(1, arch.num_kv_heads // pool.tp), arch.head_dim, 2
    if arch.mla is not None:  # one latent and one rotary key, whole on every rank
        heads, dim, tensors = 1, arch.mla.kv_lora_rank + arch.mla.qk_rope_dim, 1
    layers = arch.num_layers if arch.num_kv_layers is None else arch.num_kv_layers
    group = INT4_GROUP if pool.kv_dtype == "int4" else 0
    scale_bytes = INT4_SCALE_BYTES if group else 0
    if pool.kv_dtype in KV_SCALE_BYTES:
        group, scale_bytes = dim, KV_SCALE_BYTES[pool.kv_dtype]
    if group and dim % group:
        raise InputError(
            f"int4 groups of {group} do not divide heads of {dim}", remedy="choose another KV dtype"
        )
    return KvLayout(
        block_tokens=pool.block_tokens,
        element_bytes=0.5 if pool.kv_dtype == "int4" else KV_BYTES[pool.kv_dtype],
        kv_heads=heads,
        head_dim=dim,
        num_layers=-(-layers // pool.pp),
        num_blocks=pool.num_blocks,
        arrangement=arrangement,
        pools=pools,
        order=order,
        tensors=tensors,
        group_elements=group,
        scale_bytes=scale_bytes,
    )
