"""Searches of the built-in examples, judged on held-out traffic: the table of docs/search.md.

`python -m tests.audit.searches` runs all of them (minutes) and writes; `--only chat-h100` runs one
and keeps the others' figures; `--only none` only writes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __package__ in (None, ""):  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.audit import records
from twin.files import write_text
from twin.report.numbers import percent
from twin.search.judging.conclude import conclude
from twin.search.judging.gains import in_words
from twin.search.judging.report import search_summary
from twin.search.judging.told import CONSTRAINTS, objective_text, relative_text, told
from twin.search.objectives import OBJECTIVES
from twin.search.problem import Limits
from twin.search.setting import make_problem
from twin.search.study.coordinator import run_study
from twin.search.study.options import StudyOptions

TARGET = records.ROOT / "docs" / "search.md"
BEGIN, END = "<!-- searches: begin -->", "<!-- searches: end -->"
COMMAND = "python -m tests.audit.searches"


@dataclass(frozen=True)
class Case:
    """One search.

    Attributes:
        example: name of a built-in scenario.
        objectives: the first decides.
        limits: what candidates have to keep.
        overrides: of the scenario.
        trials: how many.
    """

    example: str
    objectives: tuple[str, ...]
    limits: Limits = field(default_factory=lambda: Limits(gpus=1))
    overrides: Mapping[str, Any] = field(default_factory=dict)
    trials: int = 60


CASES: dict[str, Case] = {
    "chat-h100": Case("chat-h100", ("p99_itl_s",)),
    "agentic-sessions-h100": Case("agentic-sessions-h100", ("p99_itl_s",)),
    "summarisation-a100": Case("summarisation-a100", ("p99_itl_s",)),
    "llama70b-fp8-tp4-h100": Case(
        "llama70b-fp8-tp4-h100", ("goodput_per_gpu_hour",), Limits(gpus=8)
    ),
    "closed-loop-h100": Case("closed-loop-h100", ("usd_per_mtok",)),
    "chat-h100, light load": Case(
        "chat-h100",
        ("goodput_per_gpu_hour",),
        overrides={"workload.arrivals.rate": 0.5, "workload.num_requests": 200},
    ),
}
"""By what the table calls them; the last is made so that nothing helps."""


def run(name: str, trials: int | None = None) -> dict[str, Any]:
    """Return the summary of one case's search, with its seconds."""
    case = CASES[name]
    problem = make_problem(
        case.example,
        case.overrides,
        engine="vllm",
        objectives=case.objectives,
        limits=case.limits,
    )
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = run_study(problem, StudyOptions(out=Path(folder), trials=trials or case.trials))
        report = conclude(problem, result, Path(folder))
    return {**search_summary(report), "wall_s": time.perf_counter() - started}


def table() -> str:
    """Return what was measured, as Markdown."""
    heads = (
        "scenario",
        "wanted",
        "default",
        "found",
        "gain (95 %)",
        "error",
        "what changes",
        "verdict",
    )
    lines = [heads, ("---",) * 2 + ("---:",) * 4 + ("---",) * 2]
    for name in CASES:
        found = records.read(f"search-{name}")
        if found is not None:
            lines += [_line(name, found)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(name: str, found: Mapping[str, Any]) -> tuple[str, ...]:
    objective = OBJECTIVES[found["objectives"][0]["name"]]
    unit = found["objectives"][0]["unit"]
    shown = next((c for c in found["confirmations"] if c["accepted"]), None)
    shown = shown or next(iter(found["confirmations"]), None)
    verdict = found["decision"] if found["decision"] != "adopt" else "**adopt**"
    kept = [CONSTRAINTS[name] for name in _rescued(found)]
    if kept:
        verdict += f": keeps {' and '.join(kept)}, which the default breaks"
    if shown is None or not shown["gains"]:
        return (name, objective.title, "–", "–", "–", "–", "–", verdict)
    gain = shown["gains"][0]
    return (
        name,
        objective.title,
        objective_text(gain["default"], unit),
        objective_text(gain["candidate"], unit),
        in_words(gain["gain"])
        + f" ({relative_text(gain['low'])} to {relative_text(gain['high'])})",
        percent(gain["forecast_error"]),
        f"`{told(shown['candidate'])}`",
        verdict,
    )


def _rescued(found: Mapping[str, Any]) -> list[str]:
    """Constraints that the default breaks and the recommended policy keeps."""
    chosen = next((c for c in found["confirmations"] if c["accepted"]), None)
    return [n for n, v in chosen["default_violations"].items() if v > 0] if chosen else []


def write() -> None:
    """Put the table where docs/search.md has a place for it."""
    text = TARGET.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    write_text(TARGET, f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}")


def main() -> None:
    """Search and write."""
    parser = argparse.ArgumentParser(description=__doc__, prog=COMMAND)
    parser.add_argument("--only", default="all", help="a case's name, all or none")
    parser.add_argument("--trials", type=int, default=None)
    asked = parser.parse_args()
    names = {"all": list(CASES), "none": []}.get(asked.only, [asked.only])
    for name in names:
        found = run(name, asked.trials)
        records.write(f"search-{name}", found)
        print(f"{name}: {found['sentence']} ({found['wall_s']:.0f} s)", flush=True)
    if TARGET.exists():
        write()


if __name__ == "__main__":
    main()
