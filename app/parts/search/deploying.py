"""From a verdict to files: what a GPU says of the policy, and the policy for every target."""

from functools import partial

import streamlit as st

from app.answers.search.exports import packed
from app.answers.search.study import Findings, Watched
from app.parts.results import answered
from app.parts.search.findings import table
from app.parts.words import plain
from app.state.session import Session
from twin.errors import InputError

_LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".sh": "bash", ".json": "json"}


def deploy(visitor: Session, watched: Watched, found: Findings) -> None:
    """Draw what changes, the word of a GPU or how to get it, and the exported files."""
    if not found.sentence:
        st.caption("Once the study is judged.")
        return
    if found.decision == "nothing keeps the constraints":
        st.info("Nothing to deploy: no candidate keeps the constraints.")
        return
    changes = found.tables.get("changes")
    if changes is None:
        st.markdown("The default is kept: the files are those of the scenario's own policy.")
    else:
        table(changes)
    st.markdown(found.hardware)
    if found.command:
        st.caption("Ask a GPU, beside the downloaded files:")
        st.code(found.command, language=None, wrap_lines=True)
    try:
        _files(visitor, watched)
    except InputError as error:
        st.warning(plain(str(error)), icon=":material/rule:")


def _files(visitor: Session, watched: Watched) -> None:
    launch = watched.study.launch
    digest = f"{watched.study.id} {launch.started_s if launch else 0}"
    answer = answered(visitor, "export", digest, {"study": watched.study.id})
    if answer is None:
        return
    targets = answer["targets"]
    chosen = st.selectbox(
        "Export for",
        list(targets),
        format_func=lambda name: f"{name}: {targets[name]['about']}",
        key="search-target",
    )
    st.download_button(
        "Download everything (ZIP)",
        data=partial(packed, answer),
        file_name="servetwin-policy.zip",
        mime="application/zip",
        key="search-zip",
        on_click="ignore",
        help="Policy, scenario, report and the files of every target",
        icon=":material/download:",
    )
    row = targets[chosen]
    if row["problem"]:
        st.warning(row["problem"], icon=":material/rule:")
        return
    for caveat in row["caveats"]:
        st.markdown(f"- {caveat}")
    if not row["caveats"]:
        st.caption("No caveats.")
    for name, text in row["files"].items():
        _file(chosen, name, text)
    st.caption("The same on the command line")
    st.code(f"twin export search --to {chosen} --out deploy", language=None)


def _file(target: str, name: str, text: str) -> None:
    words, save = st.columns([5, 1], vertical_alignment="bottom")
    words.markdown(f"**{name}**")
    save.download_button(
        "Download",
        text,
        name,
        "text/plain",
        key=f"search-file-{target}-{name}",
        help=f"Download {name}",
        on_click="ignore",
    )
    ending = name[name.rfind(".") :] if "." in name else ""
    st.code(text, language=_LANGUAGES.get(ending), height=400 if text.count("\n") > 25 else None)
