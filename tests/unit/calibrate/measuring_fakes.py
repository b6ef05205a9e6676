"""A bench without a GPU, a clock that only it moves, and rows of a made-up measurement."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from calibrate.measurement import Measurement
from calibrate.measuring.device import as_facts
from calibrate.measuring.item import Item, Timed
from calibrate.measuring.pretend import pretended
from calibrate.measuring.session import Session
from hwmodels.gpus import GPUS

H200 = GPUS["h200_sxm"]
SHA = "c" * 64


def session(engine: str = "servetwin", **facts: Any) -> Session:
    return Session({**as_facts(H200), **facts}, engine, "0.1.0", "570.1", "12.8", {"torch": "2.11"})


def gemm(m: int, **more: Any) -> Item:
    fields: dict[str, Any] = {
        "family": "gemm",
        "table": "gemm.bf16",
        "shape": {"m": m, "n": 4096, "k": 4096},
        "launches": "matmul_library",
        "dtype": "bfloat16",
        "box_s": 1.0,
    }
    return Item(**{**fields, **more})


@dataclass
class FakeBench:
    """Each item takes a second of the clock; `raises` by m, `reference` read by read."""

    takes_s: float = 1.0
    raises: dict[int, BaseException] = field(default_factory=dict)
    reference: Callable[[], float | None] = lambda: 4e12
    sha: str = SHA
    now_s: float = 0.0
    measured: list[int] = field(default_factory=list)

    def measure(self, item: Item) -> Timed:
        self.now_s += self.takes_s
        m = item.shape["m"]
        if m in self.raises:
            raise self.raises[m]
        self.measured.append(m)
        return Timed(1e-6 * m, 1.1e-6 * m, 50, "cold", self.sha)

    def sha256(self, item: Item) -> str | None:
        return self.sha

    def reference_bytes_per_s(self) -> float | None:
        self.now_s += 1.0
        return self.reference()

    def clocks(self) -> None:
        return None


def pretended_rows(items: Iterable[Item], engine: str = "servetwin") -> list[Measurement]:
    """Rows of items, as the dry run would time them."""
    one = session(engine)
    rows = []
    for item in items:
        seconds = sorted(pretended(item, H200, 0).tolist())
        l2 = item.l2 or "cold"
        rows.append(one.row(item, Timed(seconds[10], seconds[18], 20, l2, SHA), None))
    return rows
