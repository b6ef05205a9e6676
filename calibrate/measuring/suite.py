"""The suite: items in order, within a time budget, their neighbourhood watched.

Between blocks of items the same memory is read for a second. If that was faster or slower after a
block than before it, clocks or temperature moved meanwhile: the block is discarded and measured
once more at the end, if time is left.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from calibrate.measuring.bench import Bench
from calibrate.measuring.item import DeviceLost, Item, Unmeasurable
from calibrate.measuring.journal import Journal
from calibrate.measuring.session import Session

DRIFT = 0.03
BLOCK_S = 15.0
"""Between two reads of the reference."""
_REFERENCE_S = 1.5
_STEADY, _WARM_UPS = 0.01, 4
_LOST = "the GPU was lost"


@dataclass(slots=True)
class Outcome:
    """What a run did.

    Attributes:
        already: items that an earlier run had measured.
        skipped: reason by item.
        discarded: items taken back for drift and not measured again.
        not_reached: items the budget had no time for.
        references: bytes/s of the reference reads, in order.
        lost: why nothing more could be measured; empty if all went well.
    """

    measured: int = 0
    already: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    discarded: list[str] = field(default_factory=list)
    not_reached: int = 0
    references: list[float] = field(default_factory=list)
    lost: str = ""

    @property
    def reasons(self) -> Counter[str]:
        """How many items were skipped for which reason."""
        return Counter(self.skipped.values())


@dataclass(frozen=True, slots=True)
class Moment:
    """What the progress bar shows: before an item is measured."""

    item: Item
    done: int
    left_s: float


@dataclass(frozen=True, slots=True)
class Budget:
    """Seconds to spend, by a clock that began when the command did."""

    seconds: float
    clock: Callable[[], float]
    started_s: float

    def left_s(self) -> float:
        """Return the seconds left."""
        return self.started_s + self.seconds - self.clock()


class Suite:
    """One run over a plan.

    Args:
        bench: measures an item.
        journal: gets each row as soon as it is measured.
        session: what the rows say of GPU and software.
        budget: may be passed by what one item takes.
        watch: is told before each item.

    Attributes:
        outcome: up to date at any time, so also after an interrupt (ctrl-C), which passes on.
    """

    def __init__(
        self,
        bench: Bench,
        journal: Journal,
        session: Session,
        budget: Budget,
        watch: Callable[[Moment], None] = lambda _: None,
    ) -> None:
        self._bench, self._journal, self._session = bench, journal, session
        self._budget, self._watch = budget, watch
        self._block: list[Item] = []
        self._block_began_s = budget.clock()
        self._again: set[str] = set()
        self._before: float | None = None
        self.outcome = Outcome()

    def run(self, items: Iterable[Item]) -> Outcome:
        """Measure what the budget allows."""
        try:
            self._go(items)
        except DeviceLost as lost:
            self.outcome.lost = str(lost)
        return self.outcome

    def _go(self, items: Iterable[Item]) -> None:
        waiting = deque(self._new(items))
        if not waiting:
            return
        self._steady()
        while waiting or self._block:
            if waiting and self._fits(waiting[0]):
                self._measure(waiting.popleft())
                closing = self._budget.clock() - self._block_began_s >= BLOCK_S
            else:
                closing = True
                if waiting and self._budget.left_s() > _REFERENCE_S:
                    # Too long for what is left; a shorter one may still fit.
                    self._leave(waiting.popleft())
                    continue
                while waiting:
                    self._leave(waiting.popleft())
            if closing or not waiting:
                waiting.extend(self._close())

    def _new(self, items: Iterable[Item]) -> Iterable[Item]:
        """Leave out what the journal has from the very same source, and what broke the GPU."""
        kept = self._journal.kept
        for item in items:
            row = kept.rows.get(item.key)
            if row is not None and row.kernel_sha256 == self._bench.sha256(item):
                self.outcome.already += 1
            elif kept.skipped.get(item.key, "").startswith(_LOST):
                self.outcome.skipped[str(item)] = kept.skipped[item.key]
            else:
                yield item

    def _leave(self, item: Item) -> None:
        if str(item) in self._again:
            self.outcome.discarded.append(str(item))
        else:
            self.outcome.not_reached += 1

    def _fits(self, item: Item) -> bool:
        left_s = self._budget.left_s() - _REFERENCE_S
        return left_s > 0 and item.box_s <= left_s

    def _measure(self, item: Item) -> None:
        self._watch(Moment(item, self.outcome.measured, self._budget.left_s()))
        try:
            timed = self._bench.measure(item)
            self._journal.add(self._session.row(item, timed, self._bench.clocks()))
        except Unmeasurable as reason:
            self._journal.skip(item, str(reason))
            self.outcome.skipped[str(item)] = str(reason)
            return
        except DeviceLost as lost:
            self._journal.skip(item, f"{_LOST}: {lost}")
            raise
        self.outcome.measured += 1
        self._block.append(item)

    def _steady(self) -> None:
        """Read until two reads agree: a GPU that idled needs a moment to clock up."""
        before: float | None = None
        for _ in range(_WARM_UPS):
            self._before = self._read()
            if self._before is None or (before and abs(self._before / before - 1) <= _STEADY):
                break
            before = self._before
        self._block_began_s = self._budget.clock()

    def _read(self) -> float | None:
        found = self._bench.reference_bytes_per_s()
        if found is not None:
            self.outcome.references.append(found)
        return found

    def _close(self) -> list[Item]:
        """End a block; return what of it is to be measured again."""
        block, self._block = self._block, []
        after = self._read() if block else self._before
        before, self._before = self._before, after
        self._block_began_s = self._budget.clock()
        if not block or before is None or after is None or abs(after / before - 1) <= DRIFT:
            return []
        self._journal.discard(block, f"reference read drifted {after / before - 1:+.1%}")
        self.outcome.measured -= len(block)
        again = []
        for item in block:
            if str(item) in self._again:
                self.outcome.discarded.append(str(item))
            else:
                self._again.add(str(item))
                again.append(item)
        return again
