"""Where the bytes of KV go, as a heat map: a row a block size and dtype, a column a kind."""

from twin.memory.explanation import MemoryExplanation
from twin.memory.rows import BYTE_KINDS
from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import Spec, colour
from twin.report.numbers import percent

KIND_TITLES = {
    "useful": "useful KV",
    "scales": "scales",
    "tail": "tail of last block",
    "sector_waste": "sector waste",
    "tile_padding": "tile padding",
}
"""How kinds of bytes are called."""

_ROW_HEIGHT = 20


def bytes_heat_map(found: MemoryExplanation) -> Chart:
    """Return the shares of one layer's KV bytes by kind, dtype and block size."""
    title = "Where KV bytes go"
    rows: list[Row] = [
        {
            "layout": f"{row.kv_dtype}, {row.block_tokens}",
            "kv_dtype": row.kv_dtype,
            "block_tokens": row.block_tokens,
            "kind": KIND_TITLES[kind],
            "share_pct": rounded(100 * share[kind]),
        }
        for row, share in _by_dtype(found)
        for kind in BYTE_KINDS
    ]
    if not rows:
        return Chart("kv_bytes", title, {}, [], "No block fits the pool.")
    best = max(_by_dtype(found), key=lambda pair: pair[1]["useful"])
    alt = (
        f"Share of one layer's KV bytes by kind for {found.batch.seqs:,} sequences of "
        f"{found.batch.tokens:,} tokens; most useful: {best[0].kv_dtype} in blocks of "
        f"{best[0].block_tokens} ({percent(best[1]['useful'])})."
    )
    caption = (
        "Each row is divided by the sum of its five kinds: shares of two rows are no traffic to "
        "compare, bytes from DRAM are in the table. Useful KV and scales are read. The tail is "
        "held and empty. Sector waste crosses from the L2 beside what is needed. Tile padding is "
        "computed and masked, not read."
    )
    spec = unit_chart(title, alt, rows, {"layer": _layers(rows)})
    spec["height"] = _ROW_HEIGHT * len(found.rows)
    return Chart("kv_bytes", title, spec, rows, alt, caption)


def _by_dtype(found: MemoryExplanation) -> list[tuple]:  # type: ignore[type-arg]
    pairs = zip(found.rows, found.shares, strict=True)
    dtypes = list(dict.fromkeys(row.kv_dtype for row in found.rows))
    return sorted(pairs, key=lambda pair: dtypes.index(pair[0].kv_dtype))


def _layers(rows: list[Row]) -> list[Spec]:
    names = list(dict.fromkeys(row["layout"] for row in rows))
    axes: Spec = {
        "x": {
            "field": "kind",
            "type": "nominal",
            "sort": list(KIND_TITLES.values()),
            "axis": {"title": None, "orient": "top", "labelAngle": 0, "domain": False},
        },
        "y": {
            "field": "layout",
            "type": "nominal",
            "sort": names,
            "axis": {"title": "KV dtype, tokens a block", "domain": False},
        },
    }
    shade: Spec = {
        "field": "share_pct",
        "type": "quantitative",
        "scale": {"type": "sqrt", "domain": [0, 100], "range": [0.02, 0.6]},
        "legend": None,
    }
    tooltip = [
        {"field": "layout", "type": "nominal", "title": "dtype, block"},
        {"field": "kind", "type": "nominal"},
        {"field": "share_pct", "type": "quantitative", "title": "share (%)", "format": ".3~g"},
    ]
    return [
        {
            "mark": {"type": "rect", "color": colour("current")},
            "encoding": {**axes, "opacity": shade, "tooltip": tooltip},
        },
        {
            "mark": {"type": "text", "color": colour("ink"), "fontSize": 11},
            "encoding": {
                **axes,
                "text": {"field": "share_pct", "type": "quantitative", "format": ".1f"},
            },
        },
    ]
