"""Hit rates over capacity as Vega-Lite specs: a line a policy, the optimum dashed above them."""

from twin.caching.comparison import CacheComparison
from twin.caching.question import BELADY
from twin.report.charts.chart import Chart, Row, rounded, unit_chart
from twin.report.charts.style import BASELINE_DASH, Spec, colour, log_axis, log_domain
from twin.report.numbers import percent

_LOOKS = {
    "lru": ("current", "circle"),
    "fifo": ("launch", "square"),
    "lfu": ("decode", "triangle-up"),
    "s3_fifo": ("prefill", "diamond"),
    "arc": ("slo", "cross"),
    "cost_aware": ("cost", "triangle-down"),
    "ttl": ("age", "triangle-right"),
    BELADY: ("ink", "stroke"),
}
"""Colour and shape of each policy: none is told by its colour alone."""

_COVERED = "Where lines coincide, the one named later covers the others."


def rate_chart(found: CacheComparison) -> Chart:
    """Return hit rate over capacity."""
    last = len(found.question.capacities_blocks) - 1
    ends = ", ".join(
        f"{policy} {percent(found.hit_rate(policy, last))}" for policy in found.replays
    )
    alt = (
        f"Hit rate over capacity; with {found.question.capacities_blocks[last]:,} blocks: {ends}; "
        f"block reuse of the trace is {percent(found.accesses.reuse)}."
    )
    caption = f"No policy can lie above Belady's optimum, which knows the future. {_COVERED}"
    return _chart(found, ("hit_rates", "Hit rate over capacity"), "Hit rate (%)", alt, caption)


def below_chart(found: CacheComparison) -> Chart:
    """Return what the optimum has more over capacity."""
    name, title = "below_belady", "Distance to Belady's optimum"
    worst = max((row["below_belady"], row["policy"]) for row in found.as_rows())
    alt = (
        "Hit rate of Belady's optimum less that of each policy over capacity; "
        f"at most {100 * worst[0]:.1f} points ({worst[1]})."
    )
    caption = f"0: as good as knowing the future. {_COVERED}"
    return _chart(found, (name, title), "Below Belady (points)", alt, caption)


def _chart(
    found: CacheComparison, named: tuple[str, str], y_title: str, alt: str, caption: str
) -> Chart:
    (name, title), size = named, found.accesses.block_tokens
    policies = [p for p in found.replays if p != BELADY or name == "hit_rates"]
    if not policies:
        return Chart(name, title, {}, [], "No policy was asked for.")
    in_bytes = found.question.token_bytes > 0
    field = "capacity_gb" if in_bytes else "capacity_blocks"
    x_title = f"KV cache of {found.question.llm} (GB)" if in_bytes else f"Blocks of {size} tokens"
    value = "hit_rate" if name == "hit_rates" else "below_belady"
    rows: list[Row] = [
        {
            "policy": row["policy"],
            "capacity_blocks": row["capacity_blocks"],
            **({"capacity_gb": rounded(row["capacity_bytes"] / 1e9)} if in_bytes else {}),
            "percent": rounded(100 * row[value]),
        }
        for row in found.as_rows()
        if row["policy"] in policies
    ]
    domain = log_domain(min(row[field] for row in rows), max(row[field] for row in rows))
    x_axis = log_axis(field, x_title, domain)
    spec = unit_chart(title, alt, rows, {"layer": _layers(policies, x_axis, y_title)})
    return Chart(name, title, spec, rows, alt, caption)


def _layers(policies: list[str], x_axis: Spec, y_title: str) -> list[Spec]:
    looks = [_LOOKS.get(policy, ("ink", "circle")) for policy in policies]
    dashes = [BASELINE_DASH if policy == BELADY else [1, 0] for policy in policies]

    def scale(values: list[object]) -> Spec:
        return {
            "field": "policy",
            "type": "nominal",
            "scale": {"domain": policies, "range": values},
            "legend": {"title": None, "symbolSize": 60, "columns": 4},
        }

    y_axis: Spec = {
        "field": "percent",
        "type": "quantitative",
        "scale": {"domainMin": 0, "nice": True},
        "axis": {"title": y_title},
    }
    tooltip = [
        {"field": "policy", "type": "nominal"},
        {"field": x_axis["field"], "type": "quantitative", "format": ",.4~r"},
        {"field": "percent", "type": "quantitative", "title": y_title, "format": ".4~f"},
    ]
    shared = {
        "x": x_axis,
        "y": y_axis,
        "color": scale([colour(role) for role, _ in looks]),
        "strokeDash": scale(list(dashes)),
        "shape": scale([shape for _, shape in looks]),
        "tooltip": tooltip,
    }
    lines = {key: encoding for key, encoding in shared.items() if key != "shape"}
    points = {key: encoding for key, encoding in shared.items() if key != "strokeDash"}
    return [
        {"mark": {"type": "line", "strokeWidth": 2}, "encoding": lines},
        {"mark": {"type": "point", "filled": True, "size": 55, "opacity": 1}, "encoding": points},
    ]
