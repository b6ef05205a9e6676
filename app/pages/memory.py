"""Memory: who holds the KV blocks over time, what is found again, what preemptions cost."""

import shlex

import streamlit as st

from app.answers.forecast.forecast import Forecast
from app.answers.memory.eviction import EvictionAnswer, eviction_from, shares_prefixes
from app.answers.memory.pool import (
    PoolAnswer,
    memory_figures,
    memory_verdict,
    pool_from,
    recomputation_error,
    what_it_took,
)
from app.answers.setup import Setup
from app.parts.baseline import baseline_bar
from app.parts.cards import cards
from app.parts.figure import figure
from app.parts.footer import command_line
from app.parts.results import answered, calmly, forecast_of
from app.parts.words import plain
from app.state.session import Session, session
from twin.errors import InputError

_POOL, _LOST, _POLICIES = "Block pool", "Hits and preemptions", "Eviction policies"

_NO_PREFIXES = (
    "This workload does not say which prompts share a prefix, so no block is ever looked up twice "
    "and every eviction policy is alike. Bring a trace with block identities (Mooncake's "
    "`hash_ids`, JSON lines) under “Your own files”, or choose a scenario with sessions or shared "
    "prefixes, such as agentic-sessions-h100."
)
_COST = (
    "A preempted request loses its blocks and computes prompt and answer again, as far as the "
    "prefix cache does not still hold them. Tokens are counted exactly. GPU time is each such "
    "step less the same step without those tokens, at the run's own prices. A stall lasts from "
    "the loss of the blocks until the request is back where it had been."
)


def memory_page() -> None:
    """Draw the page."""
    visitor = session()
    calmly(lambda: _draw(visitor))


def _draw(visitor: Session) -> None:
    setup = visitor.setup()
    current = forecast_of(visitor, setup)
    compared = visitor.baseline_setup().digest() != setup.digest()
    before = forecast_of(visitor, visitor.baseline_setup(), role="baseline") if compared else None
    if current is None:
        return
    top = st.container()
    try:
        found = _pool(visitor, setup)
    except InputError as error:  # what the forecast says stays true
        st.warning(plain(str(error)), icon=":material/rule:")
        found = None
    with top:
        _head(visitor, current, before, found)
    pool, lost, policies = st.tabs([_POOL, _LOST, _POLICIES], key="memory-tabs", on_change="rerun")
    shown: PoolAnswer | None = found or visitor.last.get("pool")
    with pool:
        if pool.open and shown is None:
            st.caption("Who holds which block is known once every step has been taken.")
        if pool.open and shown is not None:
            _told_if_old(found)
            figure(shown.charts["pool_map"], key="chart-pool-map")
            figure(shown.charts["pool_area"], key="chart-pool-area")
    with lost:
        if lost.open and shown is not None:
            _told_if_old(found)
            _hits_and_losses(visitor, shown, current)
    with policies:
        if policies.open:
            calmly(lambda: _policies(visitor, setup))


def _head(
    visitor: Session, current: Forecast, before: Forecast | None, found: PoolAnswer | None
) -> None:
    lost = current.summary["preemptions"]
    icon = ":material/warning:" if lost else ":material/check_circle:"
    st.markdown(f"#### {icon} {memory_verdict(current.summary, found)}")
    if found is not None and found.preemptions:
        st.caption(what_it_took(found))
    cards(memory_figures(current, before, found), compared=before is not None)
    baseline_bar(visitor, compared=before is not None)


def _pool(visitor: Session, setup: Setup) -> PoolAnswer | None:
    digest = setup.digest()
    key = f"pool shown {digest}"
    kept: PoolAnswer | None = visitor.shelf.get(key)
    if kept is None:
        answer = answered(visitor, "pool", digest, {"setup": setup.as_dict()})
        if answer is None:
            return None
        kept = pool_from(answer)
        visitor.shelf.put(key, kept)
    visitor.last["pool"] = kept
    return kept


def _told_if_old(found: PoolAnswer | None) -> None:
    if found is None:
        st.caption("Updating: the charts below are those of the last setup.")


def _hits_and_losses(visitor: Session, found: PoolAnswer, current: Forecast) -> None:
    left, right = st.columns(2)
    with left:
        figure(found.charts["prefix_hits"], key="chart-prefix-hits")
    with right:
        note = recomputation_error(current.certainty) if found.preemptions else ""
        figure(found.charts["preemption_cost"], key="chart-preemption-cost", note=note)
    if found.most_preempted:
        st.caption(_COST)
        st.markdown("**Requests preempted most**")
        st.dataframe(found.most_preempted, key="most-preempted", hide_index=True)
    command = f"{command_line(visitor)} --out DIR"
    _command(
        command, "Every step's blocks and preemptions, every request's cached tokens, as files"
    )


def _policies(visitor: Session, setup: Setup) -> None:
    if not shares_prefixes(setup):
        st.info(_NO_PREFIXES, icon=":material/info:")
        _command("twin cache TRACE.jsonl", "With a trace on the command line")
        return
    answer = answered(visitor, "cache", setup.digest(), {"setup": setup.as_dict()})
    if answer is None:
        return
    found = eviction_from(answer)
    st.markdown(f"**{found.verdict}**")
    left, right = st.columns(2)
    for place, chart in zip((left, right), found.charts, strict=True):
        with place:
            figure(chart, key=f"chart-{chart.name}")
    st.dataframe(found.rows, key="eviction-policies", hide_index=True)
    for sentence in found.facts:
        st.caption(sentence)
    _cache_command(visitor, found)


def _cache_command(visitor: Session, found: EvictionAnswer) -> None:
    trace = visitor.uploads.trace
    name = "TRACE.jsonl" if trace is None else trace.name
    words = "The same on the command line"
    if trace is None:
        words = "On the command line it takes a trace that names its blocks"
    _command(shlex.join(["twin", "cache", name, *found.options]), words)


def _command(command: str, words: str) -> None:
    st.caption(words)
    st.code(command, language=None)
