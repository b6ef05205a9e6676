"""Answers on a page: at once where that is quick, else from a process that can be watched."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from app.answers.forecast.effort import AT_ONCE_S, GIVE_UP_S, expected_requests, is_large
from app.answers.forecast.forecast import Forecast, forecast, forecast_from
from app.answers.job import MOST_AT_WORK, Job, room
from app.answers.kept import SHARED
from app.answers.setup import Setup
from app.parts.words import plain
from app.state.session import Session
from twin.errors import InputError
from twin.report.numbers import count

_POLL_S = 0.5


def forecast_of(visitor: Session, setup: Setup, *, role: str = "current") -> Forecast | None:
    """Return the forecast of a setup; None while it is worked on, which is then told on the page.

    Args:
        visitor: whose page it is.
        setup: what is asked.
        role: what the page needs it for; one question is at work for each.

    Raises:
        InputError: its parts do not go together.
    """
    digest = setup.digest()
    found: Forecast | None = visitor.shelf.get(digest)
    if found is None and not setup.own:
        found = SHARED.get(digest)
    if found is not None:
        _end_job(visitor, f"forecast {role}")
        return found
    if _is_quick(visitor, setup, digest):
        _end_job(visitor, f"forecast {role}")
        try:
            found = forecast(setup, _impatient())
        except _TooLongError:
            visitor.pace.give_up(digest)
        else:
            _keep(visitor, setup, found)
            return found
    answer = answered(visitor, "forecast", digest, {"setup": setup.as_dict()}, role=role)
    if answer is None:
        return None
    found = forecast_from(answer)
    _keep(visitor, setup, found)
    return found


def _is_quick(visitor: Session, setup: Setup, digest: str) -> bool:
    """Whether the page itself may simulate a setup.

    Raises:
        InputError: its parts do not go together.
    """
    if visitor.pace.is_slow(digest) or is_large(setup):
        return False
    requests = expected_requests(setup.scenario())
    pace_key = setup.without_changes().digest()
    return visitor.pace.expected_s(pace_key, requests) <= AT_ONCE_S


class _TooLongError(Exception):
    """A simulation in the page's own process takes longer than was thought."""


def _impatient() -> Callable[[int, int | None], None]:
    """Return a progress callback that ends a simulation which holds up its page for too long.

    How many requests there are does not tell how long one takes: a small token budget or long
    answers make the same number a thousand times slower.
    """
    started_s = time.monotonic()

    def progress(done: int, total: int | None) -> None:
        del done, total
        if time.monotonic() - started_s > GIVE_UP_S:
            raise _TooLongError

    return progress


def _keep(visitor: Session, setup: Setup, found: Forecast) -> None:
    visitor.shelf.put(setup.digest(), found)
    pace_key = setup.without_changes().digest()
    visitor.pace.learn(pace_key, found.summary["requests"], found.cpu_s)
    if not setup.own:
        SHARED.put(setup.digest(), found)


def answered(
    visitor: Session,
    kind: str,
    digest: str,
    question: Mapping[str, Any],
    *,
    role: str = "",
) -> dict[str, Any] | None:
    """Return the answer of a process of its own; None while it works, which is told on the page.

    Args:
        visitor: whose page it is.
        kind: of question (`app.answers.kinds.KINDS`).
        digest: what tells this question from others.
        question: what that kind takes.
        role: tells apart questions of one kind that a page asks side by side.

    Raises:
        InputError: it cannot be answered.
    """
    slot = f"{kind} {role}".strip()
    key = f"{kind} {digest}"
    found: dict[str, Any] | None = visitor.shelf.get(key)
    if found is not None:
        return found
    if key in visitor.refused:
        _refused(visitor, key)
        return None
    job = visitor.jobs.get(slot)
    if job is None or job.digest != digest:
        _end_job(visitor, slot)  # the latest question wins
        if not room():
            _queued()
            return None
        folder = visitor.uploads.folder.fresh(kind)
        job = visitor.jobs[slot] = Job.start(kind, digest, question, folder)
    if not job.running:
        del visitor.jobs[slot]
        answer = job.answer()
        if answer is None:
            visitor.refused[key] = job.problem()
            job.clear()
            raise InputError(visitor.refused[key])
        job.clear()
        visitor.shelf.put(key, answer)
        return answer
    _watched(visitor, slot, key)
    return None


def _queued() -> None:
    """Say that the server is busy, and look again."""

    @st.fragment(run_every=_POLL_S)
    def wait() -> None:
        if room():
            st.rerun(scope="app")
        st.caption(f"Waiting: {MOST_AT_WORK} other questions are at work on this server.")

    wait()


def _refused(visitor: Session, key: str) -> None:
    left, right = st.columns([5, 1], vertical_alignment="center")
    left.info(plain(visitor.refused[key]), icon=":material/pause_circle:")
    if right.button("Ask again", key=f"again-{key[:40]}"):
        del visitor.refused[key]
        st.rerun()


def _end_job(visitor: Session, slot: str) -> None:
    job = visitor.jobs.pop(slot, None)
    if job is not None:
        job.cancel()


def _watched(visitor: Session, slot: str, key: str) -> None:
    """Show how far a job is, twice a second, until it ends or is cancelled."""

    @st.fragment(run_every=_POLL_S)
    def watch() -> None:
        job = visitor.jobs.get(slot)
        if job is None or not job.running:
            st.rerun(scope="app")
        left, right = st.columns([5, 1], vertical_alignment="center")
        with left:
            _bar(job)
        if right.button("Cancel", key=f"cancel-{slot}"):
            _end_job(visitor, slot)
            visitor.refused[key] = "Cancelled. What was shown before is still shown."
            st.rerun(scope="app")

    watch()


def _bar(job: Job) -> None:
    done = job.progress()
    if done is None:
        st.progress(0.0, "Updating …")
        return
    total = "" if done.total is None else f" of {count(done.total)}"
    share = min(1.0, done.done / done.total) if done.total else 0.0
    st.progress(share, f"Updating: {count(done.done)}{total} {done.what}")


def calmly(draw: Callable[[], None]) -> None:
    """Draw a part of a page; input that does not go together is one calm line."""
    try:
        draw()
    except InputError as error:
        st.warning(plain(str(error)), icon=":material/rule:")
