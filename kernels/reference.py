"""Oracles: what each kernel must compute, in float64 and in the plainest way."""

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return x / sqrt(mean(x²) + eps) · weight over the last axis, in float64."""
    wide = x.double()
    return wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double()


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a · b in float64."""
    return a.double() @ b.double()


def matmul_fp8(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
) -> torch.Tensor:
    """Return (a · scale_a) · (b · scale_b) in float64: scales of one, or of rows and columns."""
    return (a.double() * scale_a.double()[:, None]) @ (b.double() * scale_b.double())


def dequantise_weight(
    packed: torch.Tensor, scales: torch.Tensor, group: int | None
) -> torch.Tensor:
    """Return the weight [k, n] in float64: int8 by columns (group None), or int4 by groups of k."""
    if group is None:
        return packed.double() * scales.double()
    rows, n = packed.shape
    halves = packed.reshape(2 * rows // group, group // 2, n).to(torch.int16)
    codes = torch.cat([halves & 15, halves >> 4], dim=1) - 8
    return (codes.double() * scales.double()[:, None]).reshape(2 * rows, n)


def matmul_weight_only(
    a: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, group: int | None
) -> torch.Tensor:
    """Return a · dequantised weight in float64."""
    return a.double() @ dequantise_weight(packed, scales, group)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Return (x - mean) / sqrt(variance + eps) · weight + bias over the last axis, in float64."""
    centred = x.double() - x.double().mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    return centred / deviation * weight.double() + bias.double()


def softmax(x: torch.Tensor, clamp: float | None = None) -> torch.Tensor:
    """Return the softmax over the last axis in float64, of scores within ±clamp."""
    scores = x.double() if clamp is None else x.double().clamp(-clamp, clamp)
    return scores.softmax(-1)


def softmax_saturation(
    x: torch.Tensor, clamp: float | None, *, subtract_max: bool, half: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (counts [rows, 4], flushed mass [rows]) as `kernels.softmax.Saturation` defines them.

    Rounding is that of the format; a late clamp isn't asked for here. Exponentials in fp32 are
    taken to be zero below half the least subnormal.
    """
    scores = x.double() if clamp is None else x.double().clamp(-clamp, clamp)
    rounded = scores.half() if half else scores.float()
    largest = rounded.amax(-1, keepdim=True) if subtract_max else torch.zeros_like(rounded[:, :1])
    exponentials = (rounded - largest).double().exp()
    stored = exponentials.half() if half else exponentials.float()
    finite, zero = x.isfinite(), x.isfinite() & (stored == 0)
    clamped = torch.zeros_like(finite) if clamp is None else x.double().abs() > clamp
    overflowed = finite & ~stored.isfinite()
    counts = [flags.sum(-1) for flags in (clamped, ~finite, overflowed, zero)]
    mass = scores.softmax(-1)
    return torch.stack(counts, dim=-1), torch.where(zero, mass, 0.0).sum(-1)


def silu_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) · up of rows that hold both, in float64."""
    gate, up = gate_up.double().chunk(2, dim=-1)
    return gate * gate.sigmoid() * up


def qkv_rotary(
    qkv: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    heads: int,
    kv_heads: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (query, key, value) in float64: lanes i and i + dim / 2 as one complex number each."""
    tokens, half = qkv.shape[0], cos.shape[1]
    wide = qkv.double().view(tokens, heads + 2 * kv_heads, 2 * half)
    turn = torch.complex(cos.double(), sin.double())[positions][:, None]
    turned = torch.complex(wide[..., :half], wide[..., half:]) * turn
    rotated = torch.cat([turned.real, turned.imag], dim=-1)
    last = heads + kv_heads
    return rotated[:, :heads], rotated[:, heads:last], wide[:, last:]


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float
) -> torch.Tensor:
    """Return causal attention of queries that are the last of their context, in float64.

    Args:
        query: [queries, heads, dim].
        key: [context, kv_heads, dim]; consecutive query heads share a KV head.
        value: like key.
        scale: of logits.
    """
    queries, heads, _ = query.shape
    context, kv_heads, _ = key.shape
    query, key, value = query.double(), key.double(), value.double()
    out = torch.zeros_like(query)
    for number in range(queries):
        seen = context - queries + number + 1
        for head in range(heads if seen else 0):
            shared = head // (heads // kv_heads)
            logits = key[:seen, shared] @ query[number, head] * scale
            weights = torch.softmax(logits, dim=0)
            out[number, head] = weights @ value[:seen, shared]
    return out


def cached_tokens(cache: torch.Tensor, table: torch.Tensor, context: int) -> torch.Tensor:
    """Return a sequence's tokens [context, kv_heads, dim] from a paged cache."""
    blocks = [cache[int(block)] for block in table[: -(-context // cache.shape[1])]]
    return torch.cat(blocks)[:context] if blocks else cache[:0].flatten(0, 1)


def paged_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lens: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Return attention of packed queries [tokens, heads, dim], sequence by sequence.

    Sequence i asks with queries query_starts[i] to query_starts[i + 1], the last of its context.
    """
    out = torch.zeros(query.shape, dtype=torch.float64, device=query.device)
    for seq, context in enumerate(context_lens.tolist()):
        first, end = query_starts[seq : seq + 2].tolist()
        key = cached_tokens(key_cache, block_tables[seq], context)
        value = cached_tokens(value_cache, block_tables[seq], context)
        out[first:end] = attention(query[first:end], key, value, scale)
    return out


def quantise(
    rows: torch.Tensor, format: str, group: int | None = None, scale: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (codes, scales) of rows [..., dim] as `kernels.kv.quantised` describes them.

    In float32, not float64: which code is nearest is for the format to decide that the kernel
    computes in, or values half-way between two would differ.

    Args:
        scale: of each row, where it is given from outside, [..., 1]; else the row's own.
    """
    wide = rows.float()
    if format == "int4":
        grouped = wide.unflatten(-1, (-1, group or 1))
        lowest, highest = grouped.amin(-1), grouped.amax(-1)
        scales = torch.stack(((highest - lowest) / 15, lowest), dim=-1).half()
        step, base = scales.float().unsqueeze(-2).unbind(-1)
        above = (grouped - base) / torch.where(step > 0, step, torch.ones_like(step))
        codes = (above + 0.5).floor().clamp(0, 15).to(torch.uint8).flatten(-2)
        low, high = codes.chunk(2, dim=-1)
        return low | (high << 4), scales
    largest = 448.0 if format == "fp8" else 127.0
    found = wide.abs().amax(-1, keepdim=True) / largest if scale is None else scale
    scaled = wide / torch.where(found > 0, found, torch.ones_like(found))
    if format == "int8":
        return (scaled + 0.5).floor().clamp(-127, 127).to(torch.int8), found.squeeze(-1)
    return scaled.clamp(-448, 448).to(torch.float8_e4m3fn), found.squeeze(-1)


def dequantise(
    codes: torch.Tensor, scales: torch.Tensor, granularity: str, group: int | None = None
) -> torch.Tensor:
    """Return a quantised cache's elements [blocks, block_tokens, kv_heads, dim] in float64."""
    if granularity == "group":
        both = torch.cat((codes & 15, codes >> 4), dim=-1).double().unflatten(-1, (-1, group or 1))
        step, base = scales.double().unsqueeze(-2).unbind(-1)
        return (both * step + base).flatten(-2)
    if granularity == "token":
        return codes.double() * scales.double()[..., None]
    return codes.double() * scales.double()[:, None]
