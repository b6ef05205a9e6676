"""The tables of a layer profile as surfaces and lines to look up."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hwmodels.profile import Column, HardwareProfile
from hwmodels.spec import GpuSpec
from twin.llm.arch import ModelArch
from twin.llm.layer_attention import AttentionGrid, AttentionRoofline
from twin.llm.layer_skew import SkewFit
from twin.llm.layer_tables import ExpertTable, Line, lines

BF16_BYTES = 2


def dense_lines(profile: HardwareProfile) -> Mapping[str, Line]:
    """Return each dense part's seconds by tokens."""
    return _lines(profile, "dense", "tokens")


def head_lines(profile: HardwareProfile) -> Mapping[str, Line]:
    """Return output head and sampler by sequences."""
    return _lines(profile, "per_sequence", "sequences")


def attention_grid(
    profile: HardwareProfile, arch: ModelArch, gpu: GpuSpec, tp: int
) -> AttentionGrid:
    """Return the attention surface of a layer profile."""
    table = profile.tables["attention"]
    points = np.stack(
        [table[name] for name in ("prefill_chunk", "kv_prefill", "n_decode", "kv_decode")], axis=1
    ).astype(np.int64)
    kv_heads = max(1, -(-arch.num_kv_heads // tp))
    roofline = AttentionRoofline(
        kv_bytes_per_token=2.0 * kv_heads * arch.head_dim * BF16_BYTES,
        flops_per_pair=4.0 * arch.num_heads / tp * arch.head_dim,
        hbm_bytes_per_s=gpu.hbm_bytes_per_s,
        flops_per_s=gpu.flops_per_s["bf16"],
    )
    return AttentionGrid(points, _floats(table["seconds"]), roofline)


def skew_fit(profile: HardwareProfile) -> SkewFit:
    """Return the profile's correction for uneven decode lengths; none if it has none."""
    table = profile.tables.get("skew")
    if table is None:
        return SkewFit(())
    labels = zip(*(table[name].tolist() for name in _SKEW_LABELS), strict=True)
    rows = zip(table["prefill_chunk"].tolist(), labels, table["alpha"].tolist(), strict=True)
    return SkewFit(rows, float(profile.facts.get("skew_default", 0.0)))


_SKEW_LABELS = ("sequences", "share", "longest", "history")


def cold_floors(
    profile: HardwareProfile, arch: ModelArch, gpu: GpuSpec, tp: int
) -> dict[str, float]:
    """Return the least seconds of products whose weights an L2 can hold.

    Measured again and again they find their weights there; in serving a whole network has been
    through it since. The output head is too large for any L2: its rate at one sequence is what
    streaming weights reaches.
    """
    heads, kv_heads = arch.num_heads // tp, max(1, -(-arch.num_kv_heads // tp))
    hidden, width = arch.hidden_size, -(-arch.intermediate_size // tp)
    elements = {
        "qkv_proj": hidden * (heads + 2 * kv_heads) * arch.head_dim,
        "o_proj": hidden * heads * arch.head_dim,
        "gate_up_proj": 2 * hidden * width,
        "down_proj": hidden * width,
    }
    table = profile.tables["per_sequence"]
    one = (table["layer"] == "lm_head") & (table["sequences"] == 1)
    head_bytes = -(-arch.vocab_size // tp) * hidden * BF16_BYTES
    if not one.any() or head_bytes <= gpu.l2_bytes:
        return {}
    bytes_per_s = head_bytes / float(table["seconds"][one][0])
    return {
        name: count * BF16_BYTES / bytes_per_s
        for name, count in elements.items()
        if count * BF16_BYTES <= gpu.l2_bytes
    }


def expert_table(profile: HardwareProfile, arch: ModelArch, gpu: GpuSpec) -> ExpertTable | None:
    """Return the profile's experts without the rows whose weights a warm L2 held.

    A benchmark that wakes the same few experts again finds their weights in the L2; in serving
    other layers have been through it since.
    """
    if arch.moe is None:
        return None
    table, moe = profile.tables["moe"], arch.moe
    expert_bytes = 3 * moe.expert_intermediate * arch.hidden_size * BF16_BYTES
    experts = _counts(table["activated_experts"])
    cold = experts * expert_bytes > gpu.l2_bytes
    return ExpertTable(
        _counts(table["tokens"]),
        experts,
        _floats(table["seconds"]),
        cold if cold.any() else ~cold,
    )


def _lines(profile: HardwareProfile, name: str, count: str) -> Mapping[str, Line]:
    table = profile.tables[name]
    names = table["layer"].astype(np.str_)
    return lines(names, _counts(table[count]), _floats(table["seconds"]))


def _counts(column: Column) -> NDArray[np.int64]:
    return column.astype(np.int64)


def _floats(column: Column) -> NDArray[np.float64]:
    return column.astype(np.float64)
