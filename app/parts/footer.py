"""Below every page: the command that gives the same, the link, the scenario as a file."""

import shlex

import streamlit as st

from app.answers.scenario_text import scenario_text
from app.knobs.values import yaml_value
from app.state.link import STUDY
from app.state.session import Session
from app.state.view import UPLOADED
from twin.errors import InputError


def footer(visitor: Session) -> None:
    """Draw the command line, the link and the scenario's download."""
    st.divider()
    st.caption("The same on the command line")
    st.code(command_line(visitor), language=None, wrap_lines=True)
    with st.container(horizontal=True):
        with st.popover("Share", icon=":material/link:", width="content"):
            _share(visitor)
        _download(visitor)


def command_line(visitor: Session, *, command: str = "simulate") -> str:
    """Return the command that forecasts what is on screen."""
    view = visitor.view
    scenario = "scenario.yaml" if view.scenario == UPLOADED else view.scenario
    parts = ["twin", command, scenario]
    uploads = visitor.uploads
    for key, upload in (("workload.path", uploads.trace), ("llm", uploads.model)):
        if upload is not None:
            name = upload.name if "/" in upload.name else f"./{upload.name}"
            parts += ["--set", f"{key}={name}"]
    for key, value in view.changes.items():
        parts += ["--set", f"{key}={yaml_value(value)}"]
    return shlex.join(parts)


def _share(visitor: Session) -> None:
    if visitor.setup().own:
        st.write("This view uses an upload: download the scenario.")
        return
    st.write("The address of this page reproduces what is on screen. Copy it, or this:")
    base = (st.context.url or "").split("?")[0]
    asked = "&".join(f"{key}={value}" for key, value in st.query_params.items() if key != STUDY)
    st.code(f"{base}?{asked}" if asked else base, language=None, wrap_lines=True)


def _download(visitor: Session) -> None:
    try:
        text = scenario_text(visitor.setup())
    except InputError:
        st.button("Download", disabled=True, help="This setup cannot be simulated.")
        return
    st.download_button(
        "Download",
        text,
        "scenario.yaml",
        "application/yaml",
        help="This setup as a scenario file",
        icon=":material/download:",
        on_click="ignore",
    )
