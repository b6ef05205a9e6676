"""What each term is worth: the errors of a table without it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from calibrate.accuracy.costs import ServingCosts
from calibrate.accuracy.fitted import fitted_costs
from calibrate.accuracy.groups import CLASSES, Group, group_of
from calibrate.accuracy.pool import PredictorPool
from calibrate.accuracy.predict import WHOLE, Prediction, Variant
from calibrate.accuracy.rows import Row
from hwmodels.scaled import Corrections

_TINY = 1e-9  # of a kernel family's seconds

Change = Callable[[ServingCosts], ServingCosts]


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the prediction, and how to do without it."""

    name: str
    costs: Change = lambda costs: costs
    variant: Variant = WHOLE


def _host(costs: ServingCosts) -> ServingCosts:
    gone = {"step_s": 0.0, "seq_s": 0.0, "gap_s": 0.0, "gap_per_seq_s": 0.0}
    return costs.with_values(gone)


def _without(name: str, value: float = 0.0) -> Change:
    return lambda costs: costs.with_values({name: value})


TERMS = (
    Term("nothing"),
    Term("host time", _host),
    Term("gaps between kernels", _without("kernel_gap_s")),
    Term("prefill without a full graph", _without("no_full_graph_layer_s")),
    Term("API and HTTP", _without("api_s")),
    Term("client turnaround", _without("turnaround_s")),
    Term("all-reduce", _without("collective", _TINY)),
    Term("small kernels", _without("elementwise", _TINY)),
    Term("factor on compute-bound kernels", _without("compute", 1.0)),
    Term("extra of all-reduces over 8 ranks", _without("wide_all_reduce_s")),
    Term("overlap of 8-bit products", _without("product_overlap_s")),
    Term("all corrections of tables", lambda c: replace(c, corrections=Corrections())),
    Term("graph padding", variant=Variant(exact_graphs=True)),
    Term("deciding one step ahead", variant=Variant(in_lockstep=True)),
    Term("first wave in the mean", variant=Variant(skip_first_wave=True)),
    Term("server process", _without("front_end_event_s")),
    Term("KV capacity", variant=Variant(ample_kv=True)),
)
"""Each is left out alone; KV capacity shows in saturated rows."""


@dataclass(frozen=True, slots=True)
class Ablated:
    """Errors without a term, by class of rows as they are with all terms."""

    term: str
    classes: list[Group]


def ablate(rows: Sequence[Row], jobs: int) -> list[Ablated]:
    """Return the errors of rows without each term; rows for the slow engine are left out."""
    costs, kind = fitted_costs(), dict[str, str]()
    found: list[Ablated] = []
    with PredictorPool(jobs) as pool:
        for term in TERMS:
            asked = [(row, term.costs(costs[row.engine])) for row in rows]
            predictions = pool.predict(asked, reference=False, variant=term.variant)
            if not found:
                kind = {p.row.row_id: _class_of(p) for p in predictions}
            found.append(Ablated(term.name, _by_class(predictions, kind)))
    return found


def _class_of(prediction: Prediction) -> str:
    return next((name for name, belongs in CLASSES.items() if belongs(prediction)), "")


def _by_class(predictions: Sequence[Prediction], kind: dict[str, str]) -> list[Group]:
    return [
        group_of(name, [p for p in predictions if kind[p.row.row_id] == name]) for name in CLASSES
    ]
