"""Host time around the GPU, by engine: fits to measured serving rows, and priors beside them.

The fits stand in `hwmodels.serving_fits`. The priors are the middles of ranges that prototypes
needed to explain public serving measurements: 0.1-0.5 ms of host time a step for vLLM 0.15.1
(open loop), 0.2-1.6 ms a step plus 0.01-0.04 ms a sequence over vLLM, SGLang and TensorRT-LLM
(closed loop), and 3-5 ms of API and HTTP a request.
"""

from dataclasses import dataclass, fields, replace

from hwmodels.measured.scales import CostScales
from hwmodels.scaled import Corrections
from hwmodels.serving_fits import SERVING_FITS


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Seconds the host spends around a step and a request.

    Attributes:
        schedule_s: deciding and launching a step.
        schedule_per_seq_s: the same, for each scheduled sequence.
        update_s: processing a step's output.
        update_per_seq_s: the same, for each sequence of the step.
        wake_s: from the end of the GPU's work until the host sees it.
        api_s: HTTP, tokenising and queues, once a request.
        gap_s: what the GPU waits between steps however far ahead they are decided.
        gap_per_seq_s: the same, for each sequence of the step.
        no_full_graph_layer_s: what a layer takes longer in a step that is no full CUDA graph.
        no_full_graph_moe_layer_s: what a layer with experts takes longer on top of that.
        eager_op_s: launching one operation of a compiled step outside CUDA graphs; None: as
            measured on the GPU's host, where nothing was compiled.
        front_end_event_s: one token or end of one request in the server's one process, which
            handles them in turn; 0: never what limits.
        source: where the figures come from.
        fitted: whether a fit on runs of this very engine stands behind them.
    """

    schedule_s: float
    schedule_per_seq_s: float
    update_s: float
    update_per_seq_s: float
    wake_s: float
    api_s: float
    source: str
    fitted: bool = False
    gap_s: float = 0.0
    gap_per_seq_s: float = 0.0
    no_full_graph_layer_s: float = 0.08e-3
    no_full_graph_moe_layer_s: float = 0.0
    eager_op_s: float | None = None
    front_end_event_s: float = 0.0

    def launch_s(self, seqs: int) -> float:
        """Return the seconds of deciding and launching a step of so many sequences."""
        return self.schedule_s + self.schedule_per_seq_s * seqs

    def process_s(self, seqs: int) -> float:
        """Return the seconds of processing the output of a step of so many sequences."""
        return self.update_s + self.update_per_seq_s * seqs

    def out_s(self, now_s: float, end_s: float, seqs: int, *, empty: bool) -> float:
        """Return when the tokens of a step leave the engine.

        Args:
            now_s: from when on the step is waited for.
            end_s: when the GPU is done with it, or its launch if it is `empty`.
            seqs: sequences of the step.
            empty: it runs no tokens, so nobody has to be woken.
        """
        seen_s = end_s if empty else end_s + self.wake_s
        return max(now_s, seen_s) + self.process_s(seqs)


# 0.3 ms a step (middle of 0.1-0.5) halved between scheduling and update; 0.02 ms a sequence
# (geometric middle of 0.01-0.04) likewise; 4 ms a request (middle of 3-5). No figure for the
# wake-up is published: a blocking wait's few tens of microseconds are inside the step's range,
# so it is 0 here.
_VLLM = HostCosts(
    0.15e-3, 0.01e-3, 0.15e-3, 0.01e-3, 0.0, 4e-3,
    source="middle of 0.1-0.5 ms a step (vLLM 0.15.1 runs), 0.01-0.04 ms a sequence, 3-5 ms a "
    "request",
)  # fmt: skip

# 0.57 ms a step is the geometric middle of 0.2-1.6.
_CLOSED_LOOP_SOURCE = (
    "geometric middle of 0.2-1.6 ms a step and 0.01-0.04 ms a sequence (closed-loop rows of "
    "vLLM, SGLang and TensorRT-LLM together); 3-5 ms a request is vLLM's"
)
_CLOSED_LOOP = HostCosts(
    0.285e-3, 0.01e-3, 0.285e-3, 0.01e-3, 0.0, 4e-3, source=_CLOSED_LOOP_SOURCE
)

# (engine, least version): the newest entry not above the asked version holds.
HOST_COSTS: dict[str, tuple[tuple[tuple[int, ...], HostCosts], ...]] = {
    "vllm": (((0,), _VLLM),),
    "sglang": (((0,), _CLOSED_LOOP),),
    "trtllm": (((0,), _CLOSED_LOOP),),
}


def prior_host_costs(engine: str, version: str = "") -> HostCosts:
    """Return the priors of an engine at a version ("" or unparsable parts: the oldest).

    Raises:
        KeyError: there is no such engine.
    """
    asked = tuple(int(part) for part in version.split(".") if part.isdigit())
    entries = HOST_COSTS[engine]
    held = entries[0][1]
    for least, costs in entries:
        if least <= asked:
            held = costs
    return held


def host_costs_for(engine: str, version: str = "") -> HostCosts:
    """Return the costs of an engine at a version: the priors with what was fitted in place.

    Raises:
        KeyError: there is no such engine.
    """
    prior = prior_host_costs(engine, version)
    fitted = _fitted_values(engine)
    return replace(prior, **fitted, source=_source(prior), fitted=True) if fitted else prior


def corrections_for(engine: str) -> Corrections:
    """Return the corrections of measured kernel tables that go with an engine's host costs."""
    values = _values_of(engine)
    own = {f.name: values[f.name] for f in fields(Corrections) if f.name in values}
    families = {f.name: values[f.name] for f in fields(CostScales) if f.name in values}
    return Corrections(CostScales(**families), **own)


def _values_of(engine: str) -> dict[str, float]:
    """The fitted numbers that hold for an engine, its own before those of all."""
    found: dict[str, float] = {}
    for wanted in ("", engine):
        for key, value in SERVING_FITS["values"].items():
            owner, _, name = key.rpartition(".")
            if owner == wanted:
                found[name] = value
    return found


def _fitted_values(engine: str) -> dict[str, float]:
    known = {f.name for f in fields(HostCosts)}
    values: dict[str, float] = {}
    for name, value in _values_of(engine).items():
        if name == "step_s":
            values.update(schedule_s=value / 2, update_s=value / 2)
        elif name == "seq_s":
            values.update(schedule_per_seq_s=value / 2, update_per_seq_s=value / 2)
        elif name in known:
            values[name] = value
    return values


def _source(prior: HostCosts) -> str:
    return f"fitted on {SERVING_FITS['fitted_on']}; the rest: {prior.source}"
