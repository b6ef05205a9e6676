"""`run_study`: makes or finds the study of a problem and works on it until it is done."""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache
from types import FrameType
from typing import Any

import optuna

from twin.errors import InputError, ServetwinError
from twin.naming import lookup
from twin.search.evaluate import Evaluator, prepare
from twin.search.objectives import OBJECTIVES
from twin.search.piece import Piece
from twin.search.problem import SearchProblem
from twin.search.study.folder import check_folder
from twin.search.study.identity import differences, facts_of, study_name
from twin.search.study.ledger import Ledger
from twin.search.study.options import StudyOptions, StudyResult
from twin.search.study.processes import run_processes
from twin.search.study.progress import StudyProgress, Watch
from twin.search.study.rungs import Halving, Rung, measured_rungs
from twin.search.study.samplers import SAMPLERS, default_sampler, population_of
from twin.search.study.storage import Store, kept_errors
from twin.search.study.worker import Plan, Worker

PROBLEM, POPULATION, SHARES = "problem", "population", "shares"
_SHOWN = 3
"""Differences that a message names."""


class StudyStoppedError(ServetwinError):
    """The run was interrupted; what is done is kept.

    Args:
        message: what to do next.
        exit_code: by the signal.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""


def run_study(
    problem: SearchProblem,
    options: StudyOptions,
    progress: Callable[[StudyProgress], None] | None = None,
) -> StudyResult:
    """Search a problem; a study of it that stopped half way goes on where it was.

    Args:
        problem: what is searched.
        options: how.
        progress: told after trials how far the study is.

    Raises:
        InputError: the options, the storage, or a study or report that is there already do not fit.
        StudyStoppedError: SIGINT or SIGTERM came.
        ServetwinError: workers keep dying, or the storage cannot be used any more.
    """
    plan = _planned(problem, options)
    check_folder(options.out, plan.name, options.storage)
    store = plan.open()
    try:
        plan = _joined(plan, store)
        ledger = Ledger(store, plan.name, options.trials)
        evaluator = cache(lambda: Evaluator(problem))
        with _terminable(), kept_errors(store.where):
            try:
                plan = _decided(plan, store, evaluator)
                _work(plan, store, ledger, Watch(ledger, plan, progress), evaluator)
            except KeyboardInterrupt as interrupt:
                ledger.release()
                raise _stopped(ledger, store, options, interrupt) from None
        genetic = SAMPLERS[plan.sampler].genetic
        return StudyResult(
            trials=tuple(ledger.finished()),
            name=plan.name,
            where=store.where,
            sampler=plan.sampler,
            rungs=plan.rungs,
            population=plan.population if genetic else None,
        )
    finally:
        store.locks.leave()


def _planned(problem: SearchProblem, options: StudyOptions) -> Plan:
    several = len(problem.objectives) > 1
    sampler = options.sampler or default_sampler(len(problem.objectives))
    lookup(SAMPLERS, sampler, "sampler")
    if options.halving and several:
        raise InputError(
            "goes with one objective only: which of two is the better half is not told by several",
            where="--halving",
            remedy="leave it out, or name one --objective",
        )
    for name, value in (("--trials", options.trials), ("--workers", options.workers)):
        if value < 1:
            raise InputError(f"{value} is too few", where=name, remedy="give 1 or more")
    if options.seed < 0:
        raise InputError(f"{options.seed} is negative", where="--seed", remedy="give 0 or more")
    halving: Halving = "always" if options.halving else "never"
    if options.halving is None and sampler == "tpe" and not several:
        halving = "where it represents"
    facts = facts_of(problem, sampler, options.seed, halving)
    population = population_of(options.trials)
    return Plan(problem, options, study_name(problem, facts), sampler, halving, population)


def _joined(plan: Plan, store: Store) -> Plan:
    """Make the study, or check that the one that is there is of this problem."""
    facts = facts_of(plan.problem, plan.sampler, plan.options.seed, plan.halving)
    with store.locks.exclusive():
        if plan.options.storage is None:
            _check_same(store, facts)
        study = _made(plan, store)
        kept = study.user_attrs
        if POPULATION not in kept:
            study.set_user_attr(POPULATION, plan.population)
        if PROBLEM not in kept:  # last: a study that has it is whole
            _name_metrics(study, [OBJECTIVES[name].title for name in plan.problem.objectives])
            study.set_user_attr(PROBLEM, facts)
        _check_length(store, study, plan.options.trials)
        population = study.user_attrs[POPULATION]
    return replace(plan, population=int(population))


def _decided(plan: Plan, store: Store, evaluator: Callable[[], Evaluator]) -> Plan:
    """Return the plan with the study's rungs, which are decided before its first trial.

    All processes and later runs take what is kept: trials are compared rung by rung.
    """
    if plan.halving == "never":
        return plan
    kept = _made(plan, store).user_attrs.get(SHARES)
    if kept is None:
        prepare(plan.problem, plan.options.trials)
        # Not under the lock, which others wait for; who comes first decides.
        found = measured_rungs(
            plan.problem,
            plan.halving,
            lambda candidate, share: evaluator().evaluate(candidate, Piece(share=share)),
        )
        with store.locks.exclusive():
            study = _made(plan, store)
            if SHARES not in study.user_attrs:
                study.set_user_attr(SHARES, [asdict(rung) for rung in found])
            kept = study.user_attrs[SHARES]
    return replace(plan, rungs=tuple(Rung(**rung) for rung in kept))


def _made(plan: Plan, store: Store) -> optuna.Study:
    sampler = optuna.samplers.RandomSampler(seed=0)  # never asked: trials have their own
    known = {study.study_name for study in store.storage.get_all_studies()}
    if plan.name in known:
        return optuna.load_study(study_name=plan.name, storage=store.storage, sampler=sampler)
    return optuna.create_study(
        study_name=plan.name,
        storage=store.storage,
        directions=[OBJECTIVES[name].direction for name in plan.problem.objectives],
        sampler=sampler,
    )


def _name_metrics(study: optuna.Study, titles: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study.set_metric_names(titles)


def _check_same(store: Store, facts: dict[str, Any]) -> None:
    """Refuse a journal that holds the study of another problem."""
    for study in store.storage.get_all_studies():
        kept = study.user_attrs.get(PROBLEM)
        if kept is None:
            continue
        found = differences(kept, facts)
        if found:
            more = f" (and {len(found) - _SHOWN} more)" if len(found) > _SHOWN else ""
            raise InputError(
                f"holds the search of another problem: {', '.join(found[:_SHOWN])}{more}",
                where=store.where,
                remedy="name another --out, or delete it to start anew",
            )


def _check_length(store: Store, study: optuna.Study, trials: int) -> None:
    there = len(study.get_trials(deepcopy=False))
    if there > trials:
        raise InputError(
            f"{trials} is fewer than the {there} trials that {store.where} has already",
            where="--trials",
            remedy=f"give {there} or more",
        )


def _work(
    plan: Plan, store: Store, ledger: Ledger, watch: Watch, evaluator: Callable[[], Evaluator]
) -> None:
    watch.look()
    if ledger.complete():
        return
    if plan.options.ray is not None:
        from twin.search.study.ray_workers import run_on_ray

        run_on_ray(plan, store, ledger, watch)
        return
    prepare(plan.problem, plan.options.trials - len(ledger.finished()))
    if plan.options.workers == 1:
        worker = Worker(
            plan,
            store,
            ledger,
            lambda candidate, share: evaluator().evaluate(candidate, Piece(share=share)),
        )
        worker.run(lambda: True, watch.look)
    else:
        run_processes(plan, ledger, watch)


def _stopped(
    ledger: Ledger, store: Store, options: StudyOptions, interrupt: KeyboardInterrupt
) -> StudyStoppedError:
    done = len(ledger.finished())
    code = 143 if isinstance(interrupt, Terminated) else 130
    return StudyStoppedError(
        f"stopped after {done} of {options.trials} trials, which {store.where} keeps; the same "
        "command goes on from there",
        code,
    )


@contextmanager
def _terminable() -> Iterator[None]:
    """Take SIGTERM like ctrl-C, so that claimed trials are given back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
