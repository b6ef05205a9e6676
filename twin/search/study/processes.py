"""Workers that are processes of this machine: started, watched, replaced when they die."""

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from twin.errors import ServetwinError
from twin.search.evaluate import Evaluator
from twin.search.piece import Piece
from twin.search.study.ledger import Ledger
from twin.search.study.progress import Watch
from twin.search.study.storage import kept_errors
from twin.search.study.worker import Plan, Worker

_LOOK_S = 0.25
_PATIENCE_S = 10.0
"""For a worker to end once it was asked to."""
_DEATHS = 20
"""Workers that may die in a row without a trial finished in between."""


@dataclass(slots=True)
class _Running:
    process: BaseProcess
    words: Connection


def run_processes(plan: Plan, ledger: Ledger, watch: Watch) -> None:
    """Run a plan's workers until all its trials are finished.

    Raises:
        ServetwinError: a worker failed, or they keep dying.
    """
    workers = [_start(plan) for _ in range(plan.options.workers)]
    deaths, done = 0, -1
    try:
        while not ledger.complete():
            time.sleep(_LOOK_S)
            watch.look()
            finished = len(ledger.finished())
            deaths, done = (0 if finished > done else deaths), finished
            for at, worker in enumerate(workers):
                if worker.process.is_alive() or worker.process.exitcode == 0:
                    continue
                _raise_what_it_said(worker)
                deaths += 1
                if deaths >= _DEATHS:
                    raise ServetwinError(
                        f"workers keep dying (the last one by signal "
                        f"{-(worker.process.exitcode or 0)}; out of memory?); {finished} of "
                        f"{plan.options.trials} trials are kept"
                    )
                workers[at] = _start(plan)
        watch.look()
    finally:
        _end(workers)


def _start(plan: Plan) -> _Running:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_main, args=(plan, there), daemon=True)
    process.start()
    there.close()
    return _Running(process, here)


def _end(workers: list[_Running]) -> None:
    for worker in workers:
        worker.process.terminate()
    deadline = time.monotonic() + _PATIENCE_S
    for worker in workers:
        worker.process.join(max(deadline - time.monotonic(), 0))
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()
        worker.words.close()


def _raise_what_it_said(worker: _Running) -> None:
    """Raise the error that a worker ended with; one that was killed said nothing."""
    with contextlib.suppress(EOFError, OSError):
        if worker.words.poll():
            message, code = worker.words.recv()
            error = ServetwinError(message)
            error.exit_code = code
            raise error
    if (worker.process.exitcode or 0) > 0:
        raise ServetwinError(f"a worker ended with exit code {worker.process.exitcode}")


class _AskedToEnd(BaseException):
    """SIGTERM came."""


def _main(plan: Plan, words: Connection) -> None:
    """What a worker process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is the coordinator's to answer
    signal.signal(signal.SIGTERM, _end_self)
    parent = os.getppid()
    try:
        store = plan.open()
        ledger = Ledger(store, plan.name, plan.options.trials)
        try:
            evaluator = Evaluator(plan.problem)
            worker = Worker(
                plan,
                store,
                ledger,
                lambda candidate, share: evaluator.evaluate(candidate, Piece(share=share)),
            )
            with kept_errors(store.where):
                worker.run(lambda: os.getppid() == parent, lambda: None)
        except _AskedToEnd:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            ledger.release()
        finally:
            ledger.leave()
    except _AskedToEnd:
        pass
    except ServetwinError as error:
        words.send((str(error), error.exit_code))
        sys.exit(1)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        words.send((f"{name}{error.strerror or error}", 2))
        sys.exit(1)


def _end_self(_number: int, _frame: object) -> None:
    raise _AskedToEnd
