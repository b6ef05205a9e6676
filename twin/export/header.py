"""The comment at the head of every exported file: what is forecast, how sure that is, caveats."""

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from twin import __version__
from twin.export.deployment import Deployment, Part
from twin.export.engines import ENGINE_FORMATS
from twin.export.engines.config import EngineConfig, EngineFormat
from twin.forecast_error import STANDS_IN, forecast_error
from twin.llm.quality import caveats
from twin.units import format_seconds
from twin.validation import content_digest

_WIDTH = 96


def header(
    deployment: Deployment,
    part: Part,
    title: EngineFormat,
    config: EngineConfig,
    *,
    run: Iterable[str],
    caveats: Iterable[str] = (),
) -> str:
    """Return the comment, each line beginning with `#`.

    Args:
        deployment: what is exported.
        part: the part of it that the file is for.
        title: its engine.
        config: what the engine is told.
        run: how to use the file, line by line.
        caveats: what the target leaves out beside what the engine does.
    """
    file = part.scenario.file
    pool = f", pool {part.name}" if part.name else ""
    first = (
        f"{file.name}{pool}: {part.scenario.arch.name} on {part.gpus} x {part.scenario.gpu.name} "
        f"a replica, {title.title} {file.engine.version}"
    )
    lines = [first, f"Written by servetwin {__version__} from {deployment.origin}.", *run, ""]
    lines += forecast_lines(deployment)
    lines += [
        "",
        f"Scenario: sha256 {content_digest(deployment.scenario.as_dict())}",
        f"Hardware: {verdict_line(deployment)}",
    ]
    if config.unwritten:
        left = "; ".join(config.unwritten)
        lines += [f"Left to {title.title}, whose defaults were simulated: {left}"]
    told = dict.fromkeys((*config.caveats, *caveats, *scenario_caveats(deployment)))
    lines += ["Caveats:" if told else "Caveats: none", *(f"- {one}" for one in told)]
    return comment(lines)


def comment(lines: Iterable[str]) -> str:
    """Return lines as a comment, long ones wrapped.

    A character that cannot be printed becomes `?`: YAML readers refuse some, terminals obey others.
    """
    found = []
    for line in lines:
        line = "".join(c if c.isprintable() or c.isspace() else "?" for c in line)
        inner = "  " if line.startswith(("- ", "  ")) else ""
        wrapped = textwrap.wrap(
            " ".join(line.split()) if not line.startswith("  ") else line,
            _WIDTH,
            subsequent_indent=inner + "  " if not inner else "    ",
            initial_indent="",
            break_long_words=False,
            break_on_hyphens=False,
        )
        found += wrapped or [""]
    return "".join(f"# {line}".rstrip() + "\n" for line in found)


def forecast_lines(deployment: Deployment) -> list[str]:
    """Return what the simulation gave, and how far such forecasts are off."""
    summary = deployment.summary
    whole = f"{summary['finished']:,} of {summary['requests']:,} requests"
    lines = [f"Forecast, from a simulation of the scenario ({whole} served):"]
    for name, key in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"), ("ITL", "itl_s")):
        figures = summary[key]
        if figures is None or figures.get("mean") is None:
            continue
        parts = (f"{n} {format_seconds(figures[n])}" for n in ("mean", "p50", "p90", "p99"))
        lines.append(f"  {name:5}{', '.join(parts)}")
    lines.append(
        f"  throughput {_rate(summary['requests_per_s'])} requests/s, "
        f"{_rate(summary['output_tokens_per_s'])} output tokens/s"
    )
    lines.append(f"  {_goodput(summary)}")
    error = forecast_error(experts=deployment.scenario.arch.moe is not None)
    lines.append(
        f"Error of such forecasts, half of {error.rows} measurements within / nine in ten within: "
        f"mean TTFT {error.ttft_median:.1%} / {error.ttft_p90:.1%}, mean TPOT "
        f"{error.tpot_median:.1%} / {error.tpot_p90:.1%} ({error.basis}). {STANDS_IN}"
    )
    return lines


def _goodput(summary: Mapping[str, Any]) -> str:
    slo = summary["slo"]
    if slo is None:
        return "goodput: the scenario states no SLO"
    limits = [
        f"{name} <= {format_seconds(slo[f'{key}_limit'])}"
        for name, key in (("TTFT", "ttft_s"), ("TPOT", "tpot_s"))
        if slo[f"{key}_limit"] is not None
    ]
    met = {True: "met", False: "missed", None: "not judged"}[summary["slo_met"]]
    return (
        f"goodput {_rate(summary['goodput_requests_per_s'])} requests/s within "
        f"{', '.join(limits)}; at P{slo['percentile']:g} {met}"
    )


def _rate(value: float | None) -> str:
    return "none" if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"


def verdict_line(deployment: Deployment) -> str:
    """Return what a GPU said of the policy, or how to ask one."""
    verdict = deployment.verdict
    ask = f"run: twin-calibrate validate {deployment.origin}"
    if verdict is None:
        return f"not validated on hardware; {ask}"
    if verdict.dry_run or verdict.verdict == "pretended":
        return f"not validated on hardware, only rehearsed without a GPU; {ask}"
    errors = verdict.overall
    return (
        f"{verdict.verdict} on {verdict.gpu}, {verdict.date}: step times off by "
        f"{errors.median_pct:.1f} % (median), bias {errors.bias_pct:+.1f} %, over {errors.steps} "
        f"steps" + (f" ({' '.join(verdict.reasons)})" if verdict.reasons else "")
    )


def scenario_caveats(deployment: Deployment) -> list[str]:
    """Return what was simulated and is no part of any engine's configuration."""
    file = deployment.scenario.file
    found = _other_engine(deployment)
    if file.clients is not None:
        found.append(
            f"clients (retry {file.clients.retry.kind}) are not configured here: whoever calls the "
            "server has to time out and try again as simulated."
        )
    if file.cluster.failures is not None:
        found.append("cluster.failures were simulated; nothing here makes them happen.")
    if not file.kv_layout.costs_nothing:
        layout = file.kv_layout
        found.append(
            f"kv_layout {layout.pools}, {layout.order} was simulated; engines have no such option."
        )
    if deployment.scenario.profile is not None:
        found.append(
            f"Kernels were priced by a profile of one's own ({file.profile}); another machine may "
            "differ."
        )
    found += [f"Of the forecast: {note}" for note in deployment.scenario.notes]
    policy = deployment.scenario.file.policy
    found += caveats(policy.kv_cache_dtype, policy.quantization)
    return found


def _other_engine(deployment: Deployment) -> list[str]:
    own, here = deployment.written_for, deployment.scenario.file.engine.name
    if own is None or own == here:
        return []
    theirs, ours = ENGINE_FORMATS[own].title, ENGINE_FORMATS[here].title
    return [
        f"The policy was written or found for {theirs}. The forecast here is of {ours}'s scheduler "
        f"with what {ours} has of it; that it is a good one was never looked for there: run twin "
        f"search with engine.name {here}."
    ]


def plain_caveats(deployment: Deployment, part: Part) -> list[str]:
    """Return what a single server's file leaves to whoever starts the servers."""
    cluster, found = deployment.scenario.file.cluster, []
    several = part.replicas > 1 or len(deployment.parts) > 1 or part.autoscaler is not None
    if several:
        found.append(
            f"cluster: start {part.replicas} such servers behind a router that works as "
            f"{cluster.router.kind}; the forecast is of all together."
        )
    if part.autoscaler is not None:
        found.append("cluster.autoscaler is not configured here; see the target kubernetes.")
    return found
