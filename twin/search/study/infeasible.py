"""What to say when no candidate could be simulated."""

import re

from twin.errors import ServetwinError
from twin.search.study.options import StudyResult

_SHOWN = 3


class NothingFeasibleError(ServetwinError):
    """A search has ended, and no candidate of it could be simulated: a result, not bad input.

    Args:
        study: whose trials say why, the commonest reason first.
    """

    def __init__(self, study: StudyResult) -> None:
        counts: dict[str, int] = {}
        for reason, count in study.reasons.items():
            # Reasons that differ in their figures alone are one.
            kind = re.sub(r"\d[\d,.]*", "N", reason)
            counts[kind] = counts.get(kind, 0) + count
        order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        told = "; ".join(f"{reason} ({count})" for reason, count in order[:_SHOWN])
        super().__init__(
            f"none of {len(study.trials)} candidates could be simulated: {told}; "
            "raise --gpus or free more knobs"
        )
