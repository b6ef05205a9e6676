"""Predictions in several processes, each of which keeps to its own rows."""

import zlib
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor

from calibrate.accuracy.costs import ServingCosts
from calibrate.accuracy.predict import Prediction, Predictor, Variant
from calibrate.accuracy.rows import Row

Ask = tuple[Row, ServingCosts]

_PREDICTOR: Predictor | None = None


class PredictorPool:
    """`jobs` processes that remember what they worked out about their rows.

    A row goes to the process that its network, GPU and ranks point to, so what was priced once
    is at hand for every other row of the kind, and again in the next round of a fit. Use it as a
    context manager.
    """

    def __init__(self, jobs: int) -> None:
        self._own = Predictor()
        self._workers = [ProcessPoolExecutor(1) for _ in range(jobs)] if jobs > 1 else []

    def __enter__(self) -> "PredictorPool":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.shutdown(cancel_futures=True)

    def predict(
        self, asked: Sequence[Ask], *, reference: bool = True, variant: Variant | None = None
    ) -> list[Prediction]:
        """Return one prediction a row and its costs, in their order."""
        how = (reference, variant or Variant())
        if not self._workers:
            return _all(self._own, asked, how)
        shares: list[list[int]] = [[] for _ in self._workers]
        for place, (row, _) in enumerate(asked):
            shares[_kind(row) % len(shares)].append(place)
        found: dict[int, Prediction] = {}
        futures: list[tuple[list[int], Future[list[Prediction]]]] = [
            (share, worker.submit(_predict, [asked[place] for place in share], how))
            for share, worker in zip(shares, self._workers, strict=True)
        ]
        for share, future in futures:
            found.update(zip(share, future.result(), strict=True))
        return [found[place] for place in range(len(asked))]


def _kind(row: Row) -> int:
    return zlib.crc32(f"{row.gpu} {row.engine} {row.model} {row.tp} {row.ep}".encode())


def _predict(asked: list[Ask], how: tuple[bool, Variant]) -> list[Prediction]:
    global _PREDICTOR
    if _PREDICTOR is None:
        _PREDICTOR = Predictor()
    return _all(_PREDICTOR, asked, how)


def _all(predictor: Predictor, asked: Sequence[Ask], how: tuple[bool, Variant]) -> list[Prediction]:
    reference, variant = how
    return [
        predictor.predict(row, costs, reference=reference, variant=variant) for row, costs in asked
    ]
