"""Uploads in the sidebar: what was brought, and why something was not taken."""

from dataclasses import replace

import streamlit as st

from app.parts.words import plain
from app.state.session import Session
from app.state.uploads import SCENARIO_KB, SMALL_MB, TAKERS, TRACE_MB, Upload
from app.state.view import FIRST, UPLOADED, View
from twin.errors import InputError

_TRACE = "requests with times and lengths"
_SCENARIO = "a scenario file, as Download gives it"
_KINDS: dict[str, tuple[str, list[str], int, str]] = {
    "trace": (
        f"Trace (at most {TRACE_MB} MB)",
        ["csv", "json", "jsonl"],
        TRACE_MB,
        _TRACE,
    ),
    "scenario": (
        f"Scenario (at most {SCENARIO_KB} kB)",
        ["yaml", "yml"],
        SMALL_MB,
        _SCENARIO,
    ),
    "model": (f"Model (at most {SMALL_MB} MB)", ["json"], SMALL_MB, "a Hugging Face config.json"),
}


def uploading(visitor: Session) -> None:
    """Draw the uploads and take in what was brought."""
    with st.expander("Your own files"):
        st.caption("They stay in memory or a private folder until you leave, and in no link.")
        for kind, (title, types, most_mb, about) in _KINDS.items():
            _one(visitor, kind, title, (types, most_mb, about))


def _one(visitor: Session, kind: str, title: str, rules: tuple[list[str], int, str]) -> None:
    types, most_mb, about = rules
    brought = st.file_uploader(
        title,
        type=types,
        key=f"upload-{kind}",
        help=about,
        max_upload_size=most_mb,
    )
    seen_key = f"seen-{kind}"
    identity = None if brought is None else brought.file_id
    if identity == st.session_state.get(seen_key):
        _tell(visitor, kind)
        return
    st.session_state[seen_key] = identity
    st.session_state.pop(f"problem-{kind}", None)
    if brought is None:
        _put(visitor, kind, None)
    else:
        try:
            taken = TAKERS[kind](visitor.uploads.folder, brought.name, brought.getvalue())
        except InputError as error:
            st.session_state[f"problem-{kind}"] = str(error)
            _put(visitor, kind, None)
        else:
            _put(visitor, kind, taken)
    st.rerun()


def _tell(visitor: Session, kind: str) -> None:
    problem = st.session_state.get(f"problem-{kind}")
    if problem:
        st.error(f"Not taken: {plain(problem)}", icon=":material/block:")
    taken = getattr(visitor.uploads, kind)
    if taken is not None and taken.about:
        st.caption(plain(f"{taken.name}: {taken.about}"))


def _put(visitor: Session, kind: str, taken: Upload | None) -> None:
    before = getattr(visitor.uploads, kind)
    visitor.uploads.put(kind, taken)
    if before is None and taken is None:
        return
    if kind == "scenario":
        visitor.baseline = None
        visitor.show(View(FIRST if taken is None else UPLOADED))
        return
    # Knobs of the load or the network that it replaces mean nothing any more.
    gone = "workload." if kind == "trace" else "llm"
    if visitor.baseline is not None:
        visitor.baseline = _without(visitor.baseline, gone)
    visitor.show(_without(visitor.view, gone))


def _without(view: View, gone: str) -> View:
    kept = {key: value for key, value in view.changes.items() if not key.startswith(gone)}
    return replace(view, changes=kept)
