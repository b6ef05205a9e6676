"""Search: which policy to deploy instead, whether to believe it, and the files that deploy it."""

import streamlit as st

from app.answers.search.order import TRIALS, told
from app.answers.search.studies import Study, find_study
from app.answers.search.study import Watched
from app.parts.results import calmly
from app.parts.search.bar import actions, state_bar
from app.parts.search.deploying import deploy
from app.parts.search.findings import details, first_charts, verdict
from app.parts.search.form import order_form
from app.parts.words import plain
from app.state.session import Session, session
from twin.errors import InputError

_POLL_S = 2.0


def search_page() -> None:
    """Draw the page."""
    visitor = session()
    calmly(lambda: _draw(visitor))


def _draw(visitor: Session) -> None:
    watched = _watched(visitor)
    if watched is None:
        st.markdown(f"#### No study yet. Start with {TRIALS} trials.")
        st.caption(
            "A study tries policies on the scenario on screen, runs the best again on traffic that "
            "no trial has met, and says whether it is worth deploying."
        )
        order_form(visitor)
        return
    calmly(lambda: _study(visitor, watched))
    with st.expander("Another study, of the scenario on screen"):
        calmly(lambda: order_form(visitor))


def _study(visitor: Session, watched: Watched) -> None:
    """Draw a study; while it is at work, again and again."""
    if not watched.look().at_work:
        _now(visitor, watched, polled=False)
        return

    @st.fragment(run_every=_POLL_S)
    def follow() -> None:
        calmly(lambda: _now(visitor, watched, polled=True))

    follow()


def _now(visitor: Session, watched: Watched, *, polled: bool) -> None:
    now = watched.look()
    if polled and not now.at_work:
        st.rerun(scope="app")
    found = watched.findings()
    verdict(found)
    same = watched.order.setup.digest() == visitor.setup().digest()
    elsewhere = "" if same else " The sidebar shows another setup."
    st.caption(f"Study of {plain(told(watched.order.setup))}.{elsewhere}")
    state_bar(now)
    actions(visitor, watched, now)
    first_charts(found, now)
    details(found, lambda: deploy(visitor, watched, found))
    if not now.at_work:
        st.caption("The study on the command line")
        st.code(watched.order.command(), language=None, wrap_lines=True)


def _watched(visitor: Session) -> Watched | None:
    """Return the study on screen; None: there is none."""
    if len(visitor.studies) > 1:
        _choose(visitor)
    while visitor.studies:
        study = find_study(visitor.studies[-1])
        if study is not None:
            key = f"study {study.id}"
            kept: Watched | None = visitor.shelf.get(key)
            if kept is None:
                kept = Watched(study)
                visitor.shelf.put(key, kept)
            return kept
        visitor.studies.pop()
        st.warning(
            "The study of this address is not here: it was deleted, or another server has it.",
            icon=":material/search_off:",
        )
    return None


def _name(study: Study) -> str:
    try:
        return told(study.order.setup)
    except InputError as error:
        return str(error)


def _choose(visitor: Session) -> None:
    """Let a visitor with several studies choose; nobody else's are ever listed."""
    known = [one for one in map(find_study, visitor.studies) if one is not None]
    known.sort(key=lambda one: one.launch.started_s if one.launch else 0.0)
    names = {one.id: _name(one) for one in known}
    ids = list(names)
    chosen = st.selectbox(
        "Your studies",
        ids,
        index=ids.index(visitor.studies[-1]) if visitor.studies[-1] in ids else 0,
        format_func=lambda study_id: f"{ids.index(study_id) + 1}: {names[study_id]}",
        key=f"search-study-{len(ids)}",
    )
    if chosen and chosen != visitor.studies[-1]:
        visitor.studies.remove(chosen)
        visitor.studies.append(chosen)
