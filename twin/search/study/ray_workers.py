"""Trials evaluated on a Ray cluster that is there already.

This process alone reads and writes the study, so nodes need neither the journal nor the database.
What they need is servetwin and the files that the scenario names, under the same paths.
"""

import signal
import socket
import threading
from typing import Any

from twin.errors import InputError, ServetwinError
from twin.search.evaluate import Evaluator
from twin.search.evaluation import Evaluates, Evaluation
from twin.search.knob import Candidate
from twin.search.piece import Piece
from twin.search.problem import SearchProblem
from twin.search.study.ledger import Ledger
from twin.search.study.progress import Watch
from twin.search.study.storage import Store
from twin.search.study.worker import Plan, Worker

_LOOK_S = 0.25
_CONNECT_S = 10.0


class RemoteEvaluator:
    """Evaluates on a node.

    Args:
        problem: what is searched.
    """

    def __init__(self, problem: SearchProblem) -> None:
        self._evaluator = Evaluator(problem)

    def ready(self) -> bool:
        """Whether its files could be read: it would not be there else."""
        return True

    def evaluate(self, candidate: Candidate, share: float) -> Evaluation:
        """Evaluate a candidate on the first `share` of the search part."""
        return self._evaluator.evaluate(candidate, Piece(share=share))


def run_on_ray(plan: Plan, store: Store, ledger: Ledger, watch: Watch) -> None:
    """Run a plan on the CPUs of a Ray cluster until all its trials are finished.

    Raises:
        InputError: ray is not installed, or there is no cluster at the address.
        ServetwinError: a node cannot evaluate.
    """
    ray = _connected(str(plan.options.ray))
    try:
        count = max(int(ray.cluster_resources().get("CPU", 0)), 1)
        actor = ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=3)(RemoteEvaluator)
        actors = [actor.remote(plan.problem) for _ in range(min(count, plan.options.trials))]
        _check_ready(ray, actors)
        _share_out(ray, actors, plan, (store, ledger, watch))
    finally:
        ray.shutdown()


def _connected(address: str) -> Any:
    try:
        import ray
    except ImportError:
        raise InputError(
            "ray is not installed", where="--ray", remedy="pip install -e '.[distributed]'"
        ) from None
    _check_listens(address)
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, logging_level="ERROR", log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError, OSError, AssertionError) as error:
        raise _unreachable(address, error) from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)  # Ray's own would end us without giving trials back
    return ray


def _check_listens(address: str) -> None:
    """Refuse an address where nothing listens; Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return  # a name, such as auto, which Ray knows
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise _unreachable(address, error) from None


def _unreachable(address: str, error: BaseException) -> InputError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return InputError(
        f"no Ray cluster can be reached: {lines[0]}",
        where=f"--ray {address}",
        remedy="start one (ray start --head), or check the address",
    )


def _check_ready(ray: Any, actors: list[Any]) -> None:
    try:
        ray.get([actor.ready.remote() for actor in actors])
    except ray.exceptions.RayError as error:
        raise ServetwinError(f"a Ray node cannot evaluate: {_cause(error)}") from None


def _share_out(ray: Any, actors: list[Any], plan: Plan, study: tuple[Store, Ledger, Watch]) -> None:
    """Work with one thread an actor: it waits there, and reads and writes the study here."""
    store, ledger, watch = study
    stopped, failures = threading.Event(), list[str]()

    def work(evaluate: Evaluates) -> None:
        try:
            worker = Worker(plan, store, ledger, evaluate)
            worker.run(lambda: not stopped.is_set(), lambda: None)
        except Exception as error:
            if not stopped.is_set():
                failures.append(_cause(error))
                stopped.set()

    def far(actor: Any) -> Evaluates:
        def evaluate(candidate: Candidate, share: float) -> Evaluation:
            found: Evaluation = ray.get(actor.evaluate.remote(dict(candidate), share))
            return found

        return evaluate

    threads = [threading.Thread(target=work, args=(far(a),), daemon=True) for a in actors]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            stopped.wait(_LOOK_S)
            watch.look()
            if stopped.is_set():
                break
    finally:
        stopped.set()
        for thread in threads:
            thread.join(_LOOK_S)
    if failures:
        raise ServetwinError(f"Ray: {failures[0]}")


def _cause(error: BaseException) -> str:
    inner = getattr(error, "cause", None) or error
    lines = str(inner).strip().splitlines() or [type(inner).__name__]
    return lines[-1].strip()
