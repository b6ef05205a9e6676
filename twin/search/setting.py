"""`make_problem`: a scenario and what is wanted of it, checked for contradictions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from twin.errors import InputError
from twin.llm.layer_profiles import layer_profile_for
from twin.load.inputs import Inputs, read_inputs
from twin.load.resolve import resolve_with
from twin.load.scenario_file import read_scenario_file
from twin.load.variant import variant
from twin.naming import lookup
from twin.report.slo import read_slo
from twin.scenario import DEFAULT_VERSIONS, Scenario, ScenarioFile
from twin.search.candidates import gpus_of
from twin.search.defaults import defaults_of
from twin.search.energy import power_of
from twin.search.feasibility import check
from twin.search.knob import Knob
from twin.search.narrow import ANY, Ground, narrow
from twin.search.objectives import OBJECTIVES
from twin.search.piece import Part, Piece
from twin.search.problem import Limits, SearchProblem
from twin.search.slices import Slicer
from twin.search.space import SPACE
from twin.search.starts import starts_for
from twin.workload.spec import SessionWorkload, SharedPrefixWorkload, SyntheticWorkload

_PARTS: tuple[Part, ...] = ("search", "held_out")


def make_problem(
    path_or_example: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    engine: str,
    objectives: Sequence[str],
    limits: Limits,
    knobs: Sequence[str] | None = None,
    usd_per_gpu_hour: float | None = None,
    search_share: float = 0.7,
) -> SearchProblem:
    """Return what is to be searched.

    Args:
        path_or_example: a scenario file, or the name of a built-in example.
        overrides: dotted keys and their values, as in `load_scenario`.
        engine: whose configuration the found values have to be in; it is the scenario's engine,
            or "any": whatever the simulated scheduler of that engine could do.
        objectives: names in `OBJECTIVES`; the first decides.
        limits: what every candidate has to keep.
        knobs: keys of those that may be turned; None: all that have an effect.
        usd_per_gpu_hour: price of a GPU; None: cost is told in GPU-hours.
        search_share: share of a trace's time that trials see.

    Raises:
        InputError: one line: what contradicts what, and what would be right.
    """
    where = str(path_or_example)
    file, base = read_scenario_file(path_or_example, overrides)
    _check_wants(objectives, file, usd_per_gpu_hour, search_share)
    _check_limits(limits)
    asked = _asked(knobs)
    _check_engine(engine, file, where)
    inputs = read_inputs(file, base, where=where)
    ground = _ground(file, inputs, limits, engine, where)
    _check_facts(objectives, ground, Slicer(file, inputs, search_share))
    ground = replace(ground, named=frozenset(knobs or ()))
    found = narrow(asked, ground)
    if not found.knobs:
        raise InputError(
            "no knob is left to turn", where=where, remedy="name other knobs or widen the limits"
        )
    problem = SearchProblem(
        file=file,
        base=base,
        where=where,
        knobs=found.knobs,
        objectives=tuple(objectives),
        limits=limits,
        usd_per_gpu_hour=usd_per_gpu_hour,
        search_share=search_share,
        starts=starts_for(found.knobs, ground),
        defaults=ground.defaults,
        dropped=found.dropped,
    )
    possible = tuple(start for start in problem.starts if check(problem, start) is None)
    return replace(problem, starts=possible)


def _ground(file: ScenarioFile, inputs: Inputs, limits: Limits, engine: str, where: str) -> Ground:
    scenario = _resolved(file, inputs, limits, where)
    return Ground(
        file,
        scenario.arch,
        scenario.gpu,
        limits,
        engine,
        *_of_requests(file, inputs),
        defaults_of(scenario),
        layers_measured=_layers_measured(scenario),
    )


def _layers_measured(scenario: Scenario) -> bool:
    file = scenario.file
    gpu, engine, tp = scenario.gpu.name, file.engine, file.parallelism.tp
    if scenario.profile is not None:
        return False
    return layer_profile_for(gpu, scenario.arch, engine.name, engine.version, tp) is not None


def _check_facts(objectives: Sequence[str], ground: Ground, slicer: Slicer) -> None:
    """Check what files hold: requests on both sides of the search's share, power of the GPU."""
    for part in _PARTS:
        slicer.cut(Piece(part))
    if "joules_per_token" in objectives:
        power_of(ground.gpu)


def _check_wants(
    objectives: Sequence[str],
    file: ScenarioFile,
    usd_per_gpu_hour: float | None,
    search_share: float,
) -> None:
    if not objectives:
        raise InputError("no objective", remedy="choose of " + ", ".join(OBJECTIVES))
    for name in objectives:
        row = lookup(OBJECTIVES, name, "objective")
        if row.needs_slo and not read_slo(file.slo).asked:
            raise InputError(
                f"{name} counts requests within the SLO, and the scenario has none",
                remedy="set slo.ttft_s or slo.tpot_s, or choose another objective",
            )
    twice = [name for name in OBJECTIVES if list(objectives).count(name) > 1]
    if twice:
        raise InputError(f"objective {twice[0]} is named twice", remedy="name it once")
    if usd_per_gpu_hour is not None and not 0 < usd_per_gpu_hour < np.inf:
        raise InputError(
            f"a GPU-hour at {usd_per_gpu_hour:g} USD", remedy="give a price above 0, or none"
        )
    if not 0 < search_share < 1:
        raise InputError(
            f"search_share {search_share:g} leaves nothing on one side",
            remedy="give a share between 0 and 1, for example 0.7",
        )


def _check_limits(limits: Limits) -> None:
    if limits.gpus < 1:
        raise InputError(f"a budget of {limits.gpus} GPUs", remedy="give at least 1")
    for name in ("max_kv_error", "max_weight_error"):
        value = getattr(limits, name)
        if not 0 <= value <= 1:
            raise InputError(f"{name} {value:g} is no relative error", remedy="give 0 to 1")


def _check_engine(engine: str, file: ScenarioFile, where: str) -> None:
    if engine != ANY:
        lookup({**DEFAULT_VERSIONS, ANY: ""}, engine, "engine")
        if engine != file.engine.name:
            raise InputError(
                f"what {engine} can do is asked for, and the scenario simulates {file.engine.name}",
                where=where,
                remedy=f"set engine.name={engine}, or search {file.engine.name} or {ANY}",
            )


def _resolved(file: ScenarioFile, inputs: Inputs, limits: Limits, where: str) -> Scenario:
    """Return the scenario as it stands, which has to be within the budget itself."""
    gpus = gpus_of(file)
    if gpus > limits.gpus:
        raise InputError(
            f"the scenario itself takes {gpus} GPUs, the budget is {limits.gpus}",
            where=where,
            remedy=f"raise the budget to {gpus}, or lower parallelism and cluster.replicas",
        )
    try:
        return resolve_with(file, inputs, where=where)
    except InputError:
        least = _least_gpus(file, inputs)
        if least is None or least <= limits.gpus:
            raise
        raise InputError(
            f"{inputs.arch.name} takes {least} x {file.gpu}, the budget is {limits.gpus}",
            where=where,
            remedy=f"raise the budget to {least}",
        ) from None


def _least_gpus(file: ScenarioFile, inputs: Inputs) -> int | None:
    """Return how many GPUs a scenario takes cut as finely as it has to be; None: it never fits."""
    for tp in (size for size in (2, 4, 8) if size > file.parallelism.tp):
        cut = variant(file, {"parallelism.tp": tp}, where="")
        try:
            resolve_with(cut, inputs, where="")
        except InputError:
            continue
        return gpus_of(cut)
    return None


def _of_requests(file: ScenarioFile, inputs: Inputs) -> tuple[bool, bool]:
    """Return whether requests share prefixes, and whether they differ in priority."""
    spec, traces = file.workload, inputs.workload.traces.values()
    if isinstance(spec, SessionWorkload | SharedPrefixWorkload):
        return True, False
    if isinstance(spec, SyntheticWorkload):
        return spec.prefixes is not None, spec.priorities is not None and len(spec.priorities) > 1
    if spec.kind == "closed_loop":
        return False, False
    return (
        any(trace.segments is not None for trace in traces),
        any(trace.priority is not None and np.unique(trace.priority).size > 1 for trace in traces),
    )


def _asked(keys: Sequence[str] | None) -> tuple[Knob, ...]:
    if keys is None:
        return SPACE
    known = {knob.key: knob for knob in SPACE}
    for key in keys:
        lookup(known, key, "knob")
    return tuple(knob for knob in SPACE if knob.key in keys)
