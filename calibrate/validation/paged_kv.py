"""One layer's paged KV cache on the GPU, in 16 bits or quantised."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from calibrate.validation.shapes import RankShapes

if TYPE_CHECKING:
    import torch

    from kernels.kv.quantised import QuantisedKv


@dataclass(frozen=True, slots=True)
class Pages:
    """Where some requests of a step have their KV.

    Attributes:
        tables: int32 [seqs, max_blocks].
        contexts: int32 [seqs].
        longest: of the contexts.
        starts: int32 [seqs + 1], where each one's queries begin; None: one query each.
        most_queries: of one request.
    """

    tables: "torch.Tensor"
    contexts: "torch.Tensor"
    longest: int
    starts: "torch.Tensor | None" = None
    most_queries: int = 1


class LayerKv(Protocol):
    """A layer's cache."""

    def write(self, key: "torch.Tensor", value: "torch.Tensor", slots: "torch.Tensor") -> None:
        """Put a step's keys and values into their slots."""
        ...

    def decode(self, query: "torch.Tensor", pages: Pages, out: "torch.Tensor") -> None:
        """Attend with one query of each request."""
        ...

    def prefill(self, query: "torch.Tensor", pages: Pages, out: "torch.Tensor") -> None:
        """Attend with chunks of queries."""
        ...


class PlainKv:
    """16-bit keys and values."""

    def __init__(self, key_cache: "torch.Tensor", value_cache: "torch.Tensor") -> None:
        self._key, self._value = key_cache, value_cache

    def write(self, key: "torch.Tensor", value: "torch.Tensor", slots: "torch.Tensor") -> None:
        """Put a step's keys and values into their slots."""
        from kernels.kv.write import write_kv

        write_kv(key, value, self._key, self._value, slots)

    def decode(self, query: "torch.Tensor", pages: Pages, out: "torch.Tensor") -> None:
        """Attend with one query of each request."""
        from kernels.attention.paged_decode import paged_decode

        paged_decode(
            query, self._key, self._value, pages.tables, pages.contexts,
            max_context_tokens=pages.longest, out=out,
        )  # fmt: skip

    def prefill(self, query: "torch.Tensor", pages: Pages, out: "torch.Tensor") -> None:
        """Attend with chunks of queries."""
        from kernels.attention.paged_prefill import paged_prefill

        if pages.starts is None:
            raise ValueError("pages of chunks say where their queries begin")
        paged_prefill(
            query, self._key, self._value, pages.tables, pages.starts, pages.contexts,
            max_query_tokens=pages.most_queries, out=out,
        )  # fmt: skip


class QuantisedLayerKv:
    """8-bit codes with their scales; chunks attend over a 16-bit copy, which layers share."""

    def __init__(self, key: "QuantisedKv", value: "QuantisedKv", copy: PlainKv) -> None:
        self._key, self._value, self._copy = key, value, copy

    def write(self, key: "torch.Tensor", value: "torch.Tensor", slots: "torch.Tensor") -> None:
        """Put a step's keys and values into their slots."""
        from kernels.kv.quantise import quantise_kv

        quantise_kv(key, value, self._key, self._value, slots)

    def decode(self, query: "torch.Tensor", pages: Pages, out: "torch.Tensor") -> None:
        """Attend with one query of each request."""
        from kernels.attention.quantised_decode import quantised_decode

        quantised_decode(
            query, self._key, self._value, pages.tables, pages.contexts,
            max_context_tokens=pages.longest, out=out,
        )  # fmt: skip

    def prefill(self, query: "torch.Tensor", pages: Pages, out: "torch.Tensor") -> None:
        """Attend with chunks of queries."""
        self._copy.prefill(query, pages, out)


def plain_kv(shapes: RankShapes, blocks: int, like: "torch.Tensor") -> PlainKv:
    """Return a random 16-bit cache of `like`'s dtype and device."""
    import torch

    size = (blocks, shapes.block_tokens, shapes.kv_heads, shapes.head_dim)
    key, value = (torch.randn(size, dtype=like.dtype, device=like.device) for _ in range(2))
    return PlainKv(key, value)


def quantised_kv(
    shapes: RankShapes, blocks: int, copy: PlainKv, device: "torch.device"
) -> QuantisedLayerKv:
    """Return a random 8-bit cache: FP8 with one scale a tensor, INT8 with one a token and head."""
    from kernels.kv.quantised import empty_quantised_kv

    size = (blocks, shapes.block_tokens, shapes.kv_heads, shapes.head_dim)
    fp8 = shapes.kv_dtype == "fp8"
    caches = [
        empty_quantised_kv(
            size,
            format=shapes.kv_dtype,
            granularity="tensor" if fp8 else "token",
            device=device,
            scale=1.0 if fp8 else _INT8_SCALE,
        )
        for _ in range(2)
    ]
    for cache in caches:
        cache.codes.view(_integers()).random_(0, _FP8_BELOW if fp8 else _INT8_BELOW)
    return QuantisedLayerKv(caches[0], caches[1], copy)


def _integers() -> "torch.dtype":
    import torch

    return torch.int8


_FP8_BELOW = 64
"""Codes of E4M3 from 0 up to 2; some larger ones stand for no number."""
_INT8_BELOW, _INT8_SCALE = 127, 1 / 64
