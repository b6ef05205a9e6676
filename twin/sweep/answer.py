"""`sweep_answer`: a sweep with what is concluded from it, as plain data."""

from dataclasses import asdict
from typing import Any

from twin.sweep.first_to_break import first_to_break
from twin.sweep.knee import knee
from twin.sweep.limit import load_limit
from twin.sweep.sweep import LoadSweep


def sweep_answer(sweep: LoadSweep) -> dict[str, Any]:
    """Return what `twin sweep --json` writes; `LoadSweep.from_dict` reads it."""
    return {
        **sweep.as_dict(),
        "limit": asdict(load_limit(sweep)),
        "knee": asdict(knee(sweep)),
        "first_to_break": asdict(first_to_break(sweep)),
    }
