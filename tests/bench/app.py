"""Seconds until the what-if app answers, in a real browser.

Two figures: from opening the address until the first forecast's numbers and until its two charts
are on screen (a visitor's first page of a server that says it is ready), and from turning a knob
until charts and numbers have changed. The bars on two cores: 3 s and 1 s. Each knob value is new,
so every redraw simulates. Appends medians to benchmarks/app.csv.

`python -m tests.bench.app [REPEATS]`
"""

import csv
import os
import platform
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from tests.bench.history import machine
from tests.browser.server import CHROMIUM_FLAGS, chromium_path, served
from tests.browser.visitor import CHART, Visitor

RECORD = Path(__file__).resolve().parents[2] / "benchmarks" / "app.csv"
COLUMNS = (
    "date", "machine", "python", "engine", "repeats", "numbers_s", "first_charts_s", "redraw_s",
    "load_before",
)  # fmt: skip
BAR_FIRST_S, BAR_REDRAW_S = 3.0, 1.0
KNOB, VALUES = "rate (1/s)", (9.0, 10.0, 11.0, 12.5, 13.0, 14.0)
"""At each of these the first chart differs from that at the one before."""


def first_visit(address: str, browser: Browser) -> tuple[float, float]:
    """Return the seconds until numbers and until both charts are on screen."""
    visitor = Visitor(address, browser, Path(tempfile.gettempdir()))
    started = time.perf_counter()
    visitor.page.goto(address, wait_until="commit")
    visitor.page.locator("[data-testid=stMetric]").first.wait_for()
    numbers_s = time.perf_counter() - started
    visitor.page.locator(f"{CHART} canvas, {CHART} svg.marks").nth(1).wait_for()
    charts_s = time.perf_counter() - started
    visitor.leave()
    return numbers_s, charts_s


def redraws(address: str, browser: Browser, share: int) -> list[float]:
    """Return the seconds from a key press until the first chart's words have changed.

    Args:
        address: of the server.
        browser: a running one.
        share: another number for each call, so that no answer is known already.
    """
    visitor = Visitor(address, browser, Path(tempfile.gettempdir()))
    visitor.open(charts=2)
    found = []
    for value in VALUES:
        before = visitor.labels()[0]
        box = visitor.page.get_by_label(KNOB, exact=True)
        box.fill(f"{value + share / 50:g}")
        started = time.perf_counter()
        box.press("Enter")
        visitor.page.wait_for_function(
            "([chart, was]) => {const one = document.querySelector(chart);"
            " const now = one?.getAttribute('aria-label')"
            " || one?.querySelector('[aria-label]')?.getAttribute('aria-label');"
            " return now && now !== was;}",
            arg=[CHART, before],
        )
        found.append(time.perf_counter() - started)
        visitor.still()
    visitor.leave()
    return found


def main(repeats: int) -> None:
    """Measure, print and record."""
    from twin.engine.run import quickest_engine

    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        with served(Path(home)) as address:
            visits = [first_visit(address, browser) for _ in range(repeats)]
            turned = [s for share in range(repeats) for s in redraws(address, browser, share)]
        browser.close()
    numbers_s = statistics.median(numbers for numbers, _ in visits)
    charts_s = statistics.median(charts for _, charts in visits)
    redraw_s = statistics.median(turned)
    first = f"numbers {numbers_s:.2f} s, charts {charts_s:.2f} s"
    print(f"first forecast: {first} (bar {BAR_FIRST_S} s)")
    print(f"a knob turned: {redraw_s:.2f} s, slowest {max(turned):.2f} s (bar {BAR_REDRAW_S} s)")
    row = (
        datetime.now(UTC).date().isoformat(), machine(), platform.python_version(),
        quickest_engine(), repeats, round(numbers_s, 2), round(charts_s, 2), round(redraw_s, 2),
        round(load, 1),
    )  # fmt: skip
    fresh = not RECORD.exists()
    with RECORD.open("a", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        if fresh:
            writer.writerow(COLUMNS)
        writer.writerow(row)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
