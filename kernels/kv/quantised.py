"""A paged cache of keys or of values in 8 or 4 bits."""

from dataclasses import dataclass

import torch

from kernels.checks import check, check_tensor

GRANULARITIES = {"fp8": ("tensor", "head", "token"), "int8": ("token",), "int4": ("group",)}
"""What may share a scale, by format. A token's scale is for one KV head."""
GROUPS = (16, 32, 64)
"""Elements along dim that may share a scale in int4."""
CODE_DTYPES = {"fp8": torch.float8_e4m3fn, "int8": torch.int8, "int4": torch.uint8}
LARGEST_CODE = {"fp8": 448.0, "int8": 127.0}


@dataclass(frozen=True, slots=True)
class QuantisedKv:
    """A paged cache of keys or of values, quantised.

    Attributes:
        codes: [blocks, block_tokens, kv_heads, dim] of fp8 (e4m3) or int8; in int4 uint8
            [..., dim / 2], where byte i holds element i in its low four bits and element
            i + dim / 2 in its high ones.
        scales: float32 [1] (tensor), [kv_heads] (head) or [blocks, block_tokens, kv_heads]
            (token): an element is code · scale. In int4 fp16 [blocks, block_tokens, kv_heads,
            dim / group, 2]: an element is code · first + second, the second being the group's
            lowest: so 4 + 32 / group bits an element.
        format: "fp8", "int8" or "int4".
        granularity: "tensor", "head", "token" or "group", see `GRANULARITIES`. Scales of a tensor
            or a head are the caller's; the others are written with the codes.
        group: elements to a scale in int4; else None.

    Raises:
        KernelInputError: these do not fit together.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    format: str
    granularity: str
    group: int | None = None

    def __post_init__(self) -> None:
        _check_format(self.format, self.granularity, self.group)
        dtype = CODE_DTYPES[self.format]
        check_tensor("codes", self.codes, ("blocks", "block_tokens", "kv_heads", "dim"), (dtype,))
        check(self.codes.is_contiguous(), "codes are not contiguous")
        shape = _scales_shape(tuple(self.codes.shape), self.granularity, self.group)
        kind = torch.float16 if self.format == "int4" else torch.float32
        check_tensor("scales", self.scales, shape, (kind,), self.codes.device)
        check(self.scales.is_contiguous(), "scales are not contiguous")

    @property
    def dim(self) -> int:
        """Elements of a head."""
        return int(self.codes.shape[3]) * (2 if self.format == "int4" else 1)

    @property
    def row_bytes(self) -> int:
        """Bytes that one token of one KV head takes, its scales included."""
        return int(self.codes.shape[3]) + self.scale_bytes

    @property
    def scale_bytes(self) -> int:
        """Of them, bytes of scales."""
        if self.granularity == "group":
            return 4 * int(self.scales.shape[3])
        return 4 if self.granularity == "token" else 0

    @property
    def head_stride(self) -> int:
        """By how much scales of two KV heads lie apart, where a scale is of a tensor or head."""
        return 1 if self.granularity == "head" else 0


def empty_quantised_kv(
    shape: tuple[int, int, int, int],
    *,
    format: str,
    granularity: str,
    device: torch.device,
    group: int | None = None,
    scale: float = 1.0,
) -> QuantisedKv:
    """Return a cache of a shape [blocks, block_tokens, kv_heads, dim], its codes not set.

    Args:
        scale: of all elements, where a scale is of a tensor or head.

    Raises:
        KernelInputError: no such format, or a group that does not divide dim.
    """
    _check_format(format, granularity, group)
    *outer, dim = shape
    check(dim % (group or 2) == 0, f"dim is {dim}; a multiple of {group or 2} is needed")
    width = dim // 2 if format == "int4" else dim
    codes = torch.empty((*outer, width), dtype=CODE_DTYPES[format], device=device)
    kind = torch.float16 if format == "int4" else torch.float32
    scales_shape = _scales_shape(tuple(codes.shape), granularity, group)
    scales = torch.full(scales_shape, scale, dtype=kind, device=device)
    return QuantisedKv(codes, scales, format, granularity, group)


def _scales_shape(codes: tuple[int, ...], granularity: str, group: int | None) -> tuple[int, ...]:
    if granularity == "tensor":
        return (1,)
    if granularity == "head":
        return (codes[2],)
    return (*codes[:3], 2 * codes[3] // group, 2) if group else codes[:3]


def _check_format(format: str, granularity: str, group: int | None) -> None:
    known = ", ".join(GRANULARITIES)
    check(format in GRANULARITIES, f"format is {format!r}; one of {known} is needed")
    fitting = GRANULARITIES[format]
    words = " or ".join(fitting)
    check(granularity in fitting, f"granularity is {granularity!r}; {format} takes {words}")
    if format == "int4":
        check(group in GROUPS, f"group is {group}; int4 takes 16, 32 or 64")
    else:
        check(group is None, f"group is {group}; {format} takes none")


def check_same_format(key_cache: QuantisedKv, value_cache: QuantisedKv) -> None:
    """Check that keys and values are quantised alike and of one shape."""
    have, want = (
        (cache.format, cache.granularity, cache.group, tuple(cache.codes.shape))
        for cache in (value_cache, key_cache)
    )
    check(have == want, f"value_cache is {have} and key_cache {want}; they must be the same")


def check_fp8(cache: QuantisedKv) -> None:
    """Check that a cache's GPU has instructions for its format."""
    device = cache.codes.device
    if cache.format == "fp8" and device.type == "cuda":
        major, minor = torch.cuda.get_device_capability(device)
        check(
            (major, minor) >= (8, 9),
            f"fp8 needs compute capability 8.9 or later; {device} has {major}.{minor}",
        )
