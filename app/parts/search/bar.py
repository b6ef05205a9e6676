"""The state of a study in words and figures, and what may be done to it."""

import streamlit as st

from app.answers.search.studies import Study
from app.answers.search.study import HELD_OUT, Look, Watched
from app.parts.words import plain
from app.state.session import Session
from twin.report.numbers import MISSING, count

_TITLES = {
    "starting": "Starting",
    "running": "Running",
    "judging": "Judging",
    "pausing": "Ending",
    "paused": "Paused",
    "stopped": "Stopped",
    "failed": "Failed",
    "done": "Done",
}


def state_bar(now: Look) -> None:
    """Draw how far a study is."""
    state, trials, best, left = st.columns([3, 3, 4, 3])
    state.metric("State", _TITLES[now.state], border=True)
    trials.metric("Trials", f"{count(now.done)} of {count(now.total)}", border=True)
    title = f"Best so far ({now.unit})" if now.unit else "Best so far"
    best.metric(title, now.best or MISSING, border=True, help=HELD_OUT)
    left.metric("Time left", _clock(now), border=True, help="To the last trial; judging follows.")
    share = min(1.0, now.done / now.total) if now.total else 0.0
    st.progress(share, _sentence(now))


def actions(visitor: Session, watched: Watched, now: Look) -> None:
    """Draw what may be done now, and do it."""
    with st.container(horizontal=True):
        if now.at_work:
            _while_at_work(watched.study, now)
        else:
            _at_rest(visitor, watched, now)


def _while_at_work(study: Study, now: Look) -> None:
    if st.button(
        "Pause", key="search-pause", icon=":material/pause:", disabled=now.state == "pausing"
    ):
        study.ask("pause")
        st.rerun(scope="app")
    if st.button(
        "Stop and judge",
        key="search-judge",
        icon=":material/stop:",
        disabled=now.state in ("pausing", "judging") or not now.complete,
        help="End the trials here and say what the finished ones come to.",
    ):
        study.ask("judge")
        st.rerun(scope="app")


def _at_rest(visitor: Session, watched: Watched, now: Look) -> None:
    study, wanted = watched.study, watched.order.wanted.trials
    if (now.state != "done" or now.done < wanted) and st.button(
        "Resume",
        key="search-resume",
        icon=":material/play_arrow:",
        help=f"The same command again: it goes on from {now.done} of {wanted} trials.",
    ):
        study.start()
        st.rerun(scope="app")
    if (
        now.state != "done"
        and now.complete
        and st.button("Judge what is there", key="search-judge-now", icon=":material/gavel:")
    ):
        study.start(trials=now.begun)
        st.rerun(scope="app")
    with st.popover("Delete", icon=":material/delete:"):
        st.write("Its trials, results and copies of your files go for good.")
        if st.button("Delete this study", key="search-delete"):
            study.delete()
            visitor.studies.remove(study.id)
            st.rerun(scope="app")


def _sentence(now: Look) -> str:
    done, total = count(now.done), count(now.total)
    return {
        "starting": "The scenario's own policy is simulated first.",
        "running": f"Running: {done} of {total} trials have ended.",
        "judging": "All trials are done. The best is run again on traffic that no trial has met.",
        "pausing": "Ending: what is done is kept.",
        "paused": f"Paused after {done} of {total} trials; they are kept.",
        "stopped": f"Stopped after {done} of {total} trials: its process ended without a word "
        "(killed, out of memory, or the machine restarted). They are kept; resume it.",
        "failed": f"Failed after {done} of {total} trials: {plain(now.why)}",
        "done": f"Done: {done} trials, judged.",
    }[now.state]


def _clock(now: Look) -> str:
    if now.left_s is None:
        return MISSING
    minutes, seconds = divmod(max(0, round(now.left_s)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
