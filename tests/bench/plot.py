"""Draws docs/bench/cost.svg: CPU seconds against requests, replicas and prompt length.

Measures them itself, on a Poisson chat load (the example chat-h100) and the compiled engine:
simulation only, compiled code loaded before, the quicker of two runs. It asserts that every request
finished, and of the third panel that none waited for another.
"""

import platform
import time
from pathlib import Path

import numpy as np
import vl_convert

from tests.bench.history import machine
from twin.engine import simulate
from twin.load import load_scenario
from twin.report.charts.style import SCHEMA, colour, themed

FIGURE = Path(__file__).resolve().parents[2] / "docs" / "bench" / "cost.svg"
REQUESTS = (5_000, 10_000, 20_000, 50_000)
REPLICAS = (1, 4, 16, 64)
PROMPT_TOKENS = (500, 2_000, 8_000, 32_000)
RATE, LOW_RATE = 12, 0.1
RUNS = 2
LONGEST_USUAL_QUEUE_S = 0.01
"""Median queue time below which requests do not wait for each other: the API's 4 ms is in it."""


def measure(changes):
    """Return (CPU seconds, result) of the quicker run."""
    scenario = load_scenario("chat-h100", changes)
    taken = []
    for _ in range(RUNS):
        started = time.process_time()
        result = simulate(scenario, engine="compiled")
        taken.append(time.process_time() - started)
    finished = int((result.requests.outcome == 0).sum())
    assert finished == changes["workload.num_requests"], (changes, finished)
    return min(taken), result


def points():
    """Yield (panel, x, CPU seconds)."""
    for requests in REQUESTS:
        yield "requests", requests, measure({"workload.num_requests": requests})[0]
    for replicas in REPLICAS:
        changes = {"workload.num_requests": 20_000, "cluster.replicas": replicas}
        yield "replicas", replicas, measure(changes)[0]
    for tokens in PROMPT_TOKENS:
        lengths = {"kind": "lognormal", "mean": tokens, "std": tokens / 2, "max": 120_000}
        changes = {
            "workload.num_requests": 5_000,
            "workload.prompt_tokens": lengths,
            "workload.arrivals": {"kind": "poisson", "rate": LOW_RATE},
        }
        seconds, result = measure(changes)
        queue_s = result.requests.scheduled_s - result.requests.arrival_s
        assert np.median(queue_s) < LONGEST_USUAL_QUEUE_S, (tokens, np.median(queue_s))
        yield "prompt_tokens", tokens, seconds


PANELS = {
    "requests": (f"1 replica, {RATE} requests/s", "Requests", "linear"),
    "replicas": (f"20,000 requests, {RATE}/s in all", "Replicas", "log"),
    "prompt_tokens": (f"5,000 requests, {LOW_RATE}/s", "Mean prompt (tokens)", "log"),
}
"""Subtitle, axis title and scale."""


def panel(name, rows):
    """Return one panel: a line, its points, and their seconds beside them."""
    subtitle, title, scale = PANELS[name]
    xs = [row["x"] for row in rows]
    domain = [0, xs[-1] * 1.05] if scale == "linear" else [xs[0] / 1.6, xs[-1] * 1.6]
    highest = max(row["cpu_s"] for row in rows)
    encoding = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "scale": {"type": scale, "domain": domain, "nice": False},
            "axis": {"title": title, "values": xs, "grid": False, "labelExpr": _SHORT},
        },
        "y": {
            "field": "cpu_s",
            "type": "quantitative",
            "scale": {"domain": [0, highest * 1.2]},
            "axis": {"title": "CPU seconds", "tickCount": 5},
        },
    }
    line = {"type": "line", "strokeWidth": 2, "color": colour("current")}
    dots = {"type": "point", "filled": True, "size": 45, "color": colour("current")}
    text = {"type": "text", "dy": -11, "dx": -6, "fontSize": 11, "color": colour("ink")}
    label = {"text": {"field": "cpu_s", "type": "quantitative", "format": ".2f"}}
    return {
        "title": {"text": f"By {title[0].lower()}{title[1:]}", "subtitle": subtitle},
        "width": 270,
        "height": 200,
        "data": {"values": rows},
        "encoding": encoding,
        "layer": [{"mark": line}, {"mark": dots}, {"mark": text, "encoding": label}],
    }


_SHORT = "datum.value >= 1000 ? format(datum.value / 1000, '~r') + 'k' : format(datum.value, '~r')"


def figure(found):
    """Return the figure of (panel, x, CPU seconds) as a Vega-Lite spec."""
    rows = {
        name: [{"x": x, "cpu_s": seconds} for of, x, seconds in found if of == name]
        for name in PANELS
    }
    return {
        "$schema": SCHEMA,
        "description": "; ".join(
            f"CPU seconds by {name}: " + ", ".join(f"{r['x']}: {r['cpu_s']:.2f}" for r in of)
            for name, of in rows.items()
        ),
        "title": {
            "text": "What a simulation costs, compiled engine",
            "subtitle": f"One core of {machine()}, Python {platform.python_version()}",
        },
        "hconcat": [panel(name, of) for name, of in rows.items()],
        "spacing": 20,
    }


def main() -> None:
    """Measure and draw."""
    simulate(load_scenario("chat-h100", {"workload.num_requests": 50}), engine="compiled")
    found = []
    for name, x, seconds in points():
        found.append((name, x, seconds))
        print(f"{name:<14} {x:>7,}  {seconds:6.2f} CPU s")
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    svg = vl_convert.vegalite_to_svg(themed(figure(found)))
    FIGURE.write_text(svg + "\n", encoding="utf-8")
    print(f"wrote {FIGURE}")


if __name__ == "__main__":
    main()
