"""Capacity: does it fit, at which TP, how many requests at which context, and what trades."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import streamlit as st

from app.answers.capacity.answer import CapacityAnswer, capacity_answer
from app.answers.capacity.block_sizes import block_sentence, block_sizes, block_table
from app.answers.capacity.figures import capacity_figures
from app.answers.capacity.kv_dtypes import AUTO, dtype_table, kv_dtypes, quality_words
from app.answers.capacity.kv_worth import DTYPE_KEY, KvWorth
from app.answers.capacity.sizing import SizingAnswer
from app.answers.setup import Setup
from app.parts.cards import cards
from app.parts.figure import figure
from app.parts.footer import command_line
from app.parts.results import answered, calmly
from app.state.session import Session, session
from twin.errors import InputError

Answer = TypeVar("Answer")

_POOL = "capacity-pool"
_DTYPE = "capacity-dtype"
_SIZE, _TRADE, _GPUS = "Block size", "KV dtype", "How many GPUs?"


def capacity_page() -> None:
    """Draw the page."""
    visitor = session()
    calmly(lambda: _draw(visitor))


def _draw(visitor: Session) -> None:
    setup = visitor.setup()
    found = _answer(visitor, setup)
    if found.pools:
        visitor.last[_POOL] = st.selectbox("Pool", found.pools, key=_POOL)
        found = _answer(visitor, setup)
    icon = ":material/check_circle:" if found.fits else ":material/warning:"
    st.markdown(f"#### {icon} {found.verdict}")
    for sentence in found.detail:
        st.caption(sentence)
    before = _before(visitor, setup)
    cards(capacity_figures(found, before), compared=before is not None)
    left, right = st.columns(2)
    with left:
        figure(found.budget, key="chart-budget")
    with right:
        figure(found.requests, key="chart-concurrency")
    for note in found.notes:
        st.caption(note)
    if found.command:
        st.caption("The budget on the command line")
        st.code(found.command, language=None, wrap_lines=True)
    _tabs(visitor, setup)


def _tabs(visitor: Session, setup: Setup) -> None:
    size, trade, gpus = st.tabs([_SIZE, _TRADE, _GPUS], key="capacity-tabs", on_change="rerun")
    with size:
        if size.open:
            calmly(lambda: _block_size(visitor, setup))
    with trade:
        if trade.open:
            calmly(lambda: _kv_dtype(visitor, setup))
    with gpus:
        if gpus.open:
            calmly(lambda: _how_many(visitor, setup))


def _answer(visitor: Session, setup: Setup) -> CapacityAnswer:
    return _kept(visitor, setup, "capacity", capacity_answer)


def _kept(visitor: Session, setup: Setup, kind: str, ask: Callable[[Setup, str], Answer]) -> Answer:
    """Return the answer to a question about the pool that is looked at, asked once."""
    pool = str(visitor.last.get(_POOL, ""))
    key = f"{kind} {pool} {setup.digest()}"
    found: Answer | None = visitor.shelf.get(key)
    if found is None:
        found = ask(setup, pool)
        visitor.shelf.put(key, found)
    return found


def _before(visitor: Session, setup: Setup) -> CapacityAnswer | None:
    baseline = visitor.baseline_setup()
    if baseline.digest() == setup.digest():
        return None
    try:
        return _answer(visitor, baseline)
    except InputError:
        return None


def _block_size(visitor: Session, setup: Setup) -> None:
    sizes = _kept(visitor, setup, "block sizes", block_sizes)
    caching = setup.file()[0].policy.enable_prefix_caching
    st.markdown(f"**{block_sentence(sizes, caching)}**")
    st.table(
        block_table(sizes), hide_index=True, border="horizontal", alt="Trade-offs by block size"
    )
    st.caption(
        "At the lengths of this scenario's requests when they end. Only full blocks are shared: "
        "the share is what earlier requests held, with a cache that forgets nothing."
    )


def _kv_dtype(visitor: Session, setup: Setup) -> None:
    dtypes = _kept(visitor, setup, "kv dtypes", kv_dtypes)
    smaller = [dtype for dtype in dtypes if dtype.error]
    if not smaller:
        st.info("This engine has no KV dtype below 16 bits for this network and GPU.")
        return
    names = [dtype.name for dtype in smaller]
    own = next((dtype.name for dtype in smaller if dtype.own), names[0])
    last = visitor.last.get(_DTYPE)
    at = names.index(last if last in names else own)
    chosen = st.selectbox("KV dtype against 16 bits", names, index=at, key=_DTYPE)
    visitor.last[_DTYPE] = chosen
    calmly(lambda: _worth(visitor, setup, chosen))
    st.table(dtype_table(dtypes), hide_index=True, border="horizontal", alt="KV dtypes compared")
    st.caption(quality_words(next(dtype for dtype in smaller if dtype.name == chosen)))
    st.code(_kv_command(visitor, chosen), language=None, wrap_lines=True)


def _worth(visitor: Session, setup: Setup, dtype: str) -> None:
    plain = replace(setup, changes={**setup.changes, DTYPE_KEY: AUTO})
    question = {"setup": plain.as_dict(), "dtype": dtype}
    answer = answered(visitor, "kv_dtype", f"{dtype} {plain.digest()}", question)
    if answer is None:
        return
    worth = KvWorth(**answer)
    st.markdown(f"**{worth.sentence}**")
    st.table(worth.latencies, hide_index=True, border="horizontal", alt="Latencies of both dtypes")
    st.caption(worth.error)
    for sentence in worth.break_even:
        st.markdown(sentence)
    with st.expander("How it is decided"):
        st.markdown("\n\n".join(worth.lines))
        st.caption("Decode step, and prompt alone, over the same with 16-bit KV: below 1 is faster")
        st.table(worth.steps, hide_index=True, alt="Step times by batch and context")


def _kv_command(visitor: Session, dtype: str) -> str:
    changes = {key: v for key, v in visitor.view.changes.items() if key != DTYPE_KEY}
    plain = replace(visitor, view=replace(visitor.view, changes=changes))
    return f"{command_line(plain, command='kv-dtype')} --dtype {dtype}"


def _how_many(visitor: Session, setup: Setup) -> None:
    slo = setup.file()[0].slo
    if slo.ttft_s is None and slo.tpot_s is None:
        st.info("There is no SLO to size for: set `ttft_s` or `tpot_s` under Objective.")
        return
    answer = answered(visitor, "size", setup.digest(), {"setup": setup.as_dict()})
    if answer is None:
        st.caption("Looking for the smallest number of replicas that meets the SLO.")
        return
    found = SizingAnswer(**answer)
    st.markdown(f"**{found.sentence}**")
    st.table(found.table, hide_index=True, border="horizontal", alt="Numbers of replicas simulated")
    st.caption(found.error)
    for note in found.notes:
        st.caption(note)
    st.code(command_line(visitor, command="size"), language=None, wrap_lines=True)
