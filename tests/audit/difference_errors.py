"""How far the ratio of two forecasts is off the ratio of the two measurements.

`python -m tests.audit.difference_errors` predicts the closed-loop rows of H100 and H200, each with
its own group (GPU, engine, network) left out of the fit, pairs those of one deployment, and prints
the table of docs/accuracy.md (some ten minutes). `DIFFERENCE_ERRORS` holds its first rows.
"""

import itertools
import math
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path

import numpy as np

if __package__ in (None, ""):  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from calibrate.accuracy.groups import is_saturated
from calibrate.accuracy.judge import judge
from calibrate.accuracy.predict import Prediction
from calibrate.accuracy.rows import read_tables
from tests.audit import records

COMMAND = "python -m tests.audit.difference_errors"
FOURFOLD = 4

Pair = tuple[Prediction, Prediction]


def deployment(one: Prediction) -> Hashable:
    """What has to be the same for steps to have the same prices."""
    row = one.row
    return (*row.group, row.version, row.tp, row.pp, row.attention_dp, row.ep)


def pairs(
    rows: Iterable[Prediction],
    same: Callable[[Prediction], Hashable],
    differ: Callable[[Prediction, Prediction], bool],
) -> Iterator[Pair]:
    """Yield the pairs with the same key that differ as asked."""
    groups: dict[Hashable, list[Prediction]] = {}
    for one in rows:
        groups.setdefault(same(one), []).append(one)
    for group in groups.values():
        yield from ((a, b) for a, b in itertools.combinations(group, 2) if differ(a, b))


def fold(a: float, b: float) -> float:
    """Return the larger over the smaller."""
    return max(a, b) / min(a, b)


KINDS: dict[str, tuple[Callable[[Prediction], Hashable], Callable[[Prediction, Prediction], bool]]]
KINDS = {
    "one deployment, up to four times the clients": (
        lambda p: (deployment(p), p.row.isl, p.row.osl),
        lambda a, b: 1 < fold(a.row.concurrency, b.row.concurrency) <= FOURFOLD,
    ),
    "one deployment, any number of clients": (
        lambda p: (deployment(p), p.row.isl, p.row.osl),
        lambda a, b: a.row.concurrency != b.row.concurrency,
    ),
    "one deployment, other lengths": (
        lambda p: (deployment(p), p.row.concurrency),
        lambda a, b: (a.row.isl, a.row.osl) != (b.row.isl, b.row.osl),
    ),
    "other tensor parallelism, the same load": (
        lambda p: (*p.row.group, p.row.isl, p.row.osl, p.row.concurrency),
        lambda a, b: a.row.tp != b.row.tp,
    ),
}
"""By what a pair has in common and in what it differs."""


def errors(found: Iterable[Pair], metric: str) -> list[float]:
    """Return the relative errors of the ratio of a metric, without sign."""
    sizes = []
    for a, b in found:
        logs = [
            math.log(getattr(p, metric) / getattr(p.row, metric))
            for p in (a, b)
            if getattr(p.row, metric) > 0 and math.isfinite(getattr(p, metric))
        ]
        if len(logs) == 2 and all(map(math.isfinite, logs)):
            sizes.append(abs(math.expm1(logs[0] - logs[1])))
    return sizes


def line(name: str, networks: str, tpot: list[float], ttft: list[float]) -> str:
    """Return a row of the table."""
    cells = [networks, name, str(len(tpot))]
    for sizes in (tpot, ttft):
        cells += [f"{100 * float(np.percentile(sizes, q)):.1f}" for q in (50, 90)]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Predict and print."""
    rows = read_tables([records.data_folder() / "silicon" / "hopper_serving_dev.csv"])

    def progress(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done}/{total}", end="", file=sys.stderr)

    found = judge(rows, 1, reference=False, progress=progress).held_out
    print("| networks | pairs | n | TPOT median | P90 | TTFT median | P90 |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for networks, moe in (("dense", False), ("with experts", True)):
        kept = [p for p in found if not p.why_not and p.moe is moe and not is_saturated(p)]
        for name, (same, differ) in KINDS.items():
            told = list(pairs(kept, same, differ))
            print(line(name, networks, errors(told, "tpot_s"), errors(told, "ttft_s")))


if __name__ == "__main__":
    main()
