"""What a study shall find, checked while it is filled in, and the button that starts it."""

from dataclasses import replace

import streamlit as st

from app.answers.search.order import (
    ANY,
    GOODPUT,
    MOST_TRIALS,
    TRIALS,
    Order,
    Space,
    Wanted,
    objectives,
    own_gpus,
    space_of,
)
from app.answers.search.studies import MOST_RUNNING, find_study, new_study
from app.parts.words import plain
from app.state.session import Session
from twin.errors import InputError

_KEPT = "search wanted"


def order_form(visitor: Session) -> None:
    """Draw the form, the command that does the same, and Start.

    Raises:
        InputError: the scenario on screen cannot be simulated.
    """
    setup = visitor.setup()
    wanted = _wanted(visitor, Order(setup, visitor.last.get(_KEPT, Wanted())))
    visitor.last[_KEPT] = wanted
    order = Order(setup, wanted)
    problem = _problem(visitor, order)
    if problem:
        st.warning(plain(problem), icon=":material/rule:")
    busy = any(study.alive for study in map(find_study, visitor.studies) if study is not None)
    if busy:
        st.caption("Your study runs: pause it, or wait for it, before another one starts.")
    if st.button(
        f"Start {wanted.trials} trials",
        key="search-start",
        type="primary",
        disabled=bool(problem) or busy,
        icon=":material/play_arrow:",
    ):
        _start(visitor, order)
    st.caption(
        "It runs on the server in a process of its own: close the browser and nothing is lost. "
        "The address of this page leads back to it, and anybody who has that address may pause or "
        f"delete it. One study a visitor at a time, at most {MOST_RUNNING} on this server, one "
        "core each. Uploads are copied to a private folder until the study is deleted."
    )
    st.caption("The study on the command line")
    st.code(order.command(), language=None, wrap_lines=True)


def _start(visitor: Session, order: Order) -> None:
    study = new_study(order)
    try:
        study.start()
    except InputError:
        study.delete()
        raise
    visitor.studies.append(study.id)
    st.rerun()


def _wanted(visitor: Session, kept: Order) -> Wanted:
    names = objectives()
    left, middle, right = st.columns([3, 1, 1])
    _first("search-objectives", [n for n in kept.wanted.objectives if n in names] or [GOODPUT])
    chosen = left.multiselect(
        "Objectives (the first decides)",
        list(names),
        format_func=lambda name: names[name],
        key="search-objectives",
        help="Several give a Pareto set. The scenario's SLO is a constraint in any case.",
    )
    _first("search-trials", kept.wanted.trials)
    trials = middle.number_input(
        "Trials", 1, MOST_TRIALS, step=10, key="search-trials",
        help=f"Candidates to try. {TRIALS} give a first answer, 200 are the command's default.",
    )  # fmt: skip
    least = own_gpus(kept)
    _first("search-gpus", max(least, kept.wanted.gpus or least))
    st.session_state["search-gpus"] = max(least, st.session_state["search-gpus"])
    gpus = right.number_input(
        "GPUs, at most", least, 1024, step=1, key="search-gpus",
        help="All replicas together. More than the scenario takes opens parallelism and replicas.",
    )  # fmt: skip
    wanted = replace(
        kept.wanted,
        objectives=tuple(chosen),
        trials=int(trials),
        gpus=None if gpus == least else int(gpus),
    )
    return _more(visitor, replace(kept, wanted=wanted))


def _more(visitor: Session, order: Order) -> Wanted:
    wanted = order.wanted
    name = order.setup.file()[0].engine.name
    _first("search-engine", bool(wanted.engine))
    anything = st.toggle(
        "Also what no engine has (--engine any)",
        key="search-engine",
        help=f"Off: only what {name} can be configured to. On: whatever its simulated scheduler "
        "could do, such as other eviction policies; such a result cannot be exported.",
    )
    # The price is the sidebar's.
    usd = visitor.view.usd_per_gpu_hour
    wanted = replace(wanted, engine=ANY if anything else "", usd_per_gpu_hour=usd)
    space = _space(visitor, replace(order, wanted=wanted))
    if space is None:
        return replace(wanted, knobs=None)
    return replace(wanted, knobs=_knobs(space, wanted.knobs))


def _knobs(space: Space, kept: tuple[str, ...] | None) -> tuple[str, ...] | None:
    with st.expander(f"Knobs to search: {len(space.knobs)} have an effect here"):
        every = list(space.knobs)
        _first("search-every", kept is None)
        if st.toggle("All of them", key="search-every"):
            st.caption("; ".join(f"`{key}` ({about})" for key, about in space.knobs.items()))
            _left_out(space)
            return None
        _first("search-knobs", list(kept or every))
        st.session_state["search-knobs"] = [
            key for key in st.session_state["search-knobs"] if key in space.knobs
        ]
        chosen = st.multiselect(
            "Knobs",
            every,
            key="search-knobs",
            format_func=lambda key: f"{key}: {space.knobs[key]}",
        )
        _left_out(space)
    return tuple(chosen)


def _left_out(space: Space) -> None:
    if space.dropped:
        told = "; ".join(f"`{key}` ({why})" for key, why in space.dropped.items())
        st.caption(f"Left out: {told}.")


def _space(visitor: Session, order: Order) -> Space | None:
    """Return what can be chosen; None: something contradicts something, which is told later."""
    key = f"space {order.setup.digest()} {replace(order.wanted, knobs=None, trials=1)}"
    found: Space | str | None = visitor.shelf.get(key)
    if found is None:
        try:
            with visitor.uploads.folder.passing("search") as folder:
                found = space_of(order, folder)
        except InputError as error:
            found = str(error)
        visitor.shelf.put(key, found)
    return found if isinstance(found, Space) else None


def _problem(visitor: Session, order: Order) -> str:
    """Return what contradicts what, in one line; empty: nothing does."""
    if order.wanted.knobs == ():
        return "No knob is chosen: choose one, or all of them."
    key = f"order {order.setup.digest()} {replace(order.wanted, trials=1)}"
    found: str | None = visitor.shelf.get(key)
    if found is None:
        try:
            with visitor.uploads.folder.passing("search") as folder:
                order.problem(folder)
            found = ""
        except InputError as error:
            found = str(error)
        visitor.shelf.put(key, found)
    return found


def _first(key: str, value: object) -> None:
    """Give a widget its value where it is made anew; a page that was left forgets it."""
    if key not in st.session_state:
        st.session_state[key] = value
