"""`twin cache`: how eviction policies fare on a trace, beside the best possible."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.output import (
    JSON_HELP,
    check_distinct,
    check_file,
    check_json,
    console_for,
    emit_json,
)

if TYPE_CHECKING:
    from twin.caching.accesses import BlockAccesses
    from twin.caching.comparison import CacheComparison
    from twin.caching.gpu_pool import GpuPool
    from twin.caching.question import CacheQuestion
    from twin.workload.trace import Trace

_LOOKUPS_OF_A_PROCESS = 1_000_000


def cache_command(
    trace: Annotated[str, typer.Argument(help="A trace file that tells block identities.")],
    capacities: Annotated[
        str | None,
        typer.Option(
            metavar="LIST",
            help="Pool sizes, comma-separated: blocks, all, gpu, or with --llm sizes like 80GiB.",
        ),
    ] = None,
    policies: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Eviction policies, comma-separated; default: all."),
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option(min=1, max=10**6, help="Tokens a block; default: the trace's own blocks."),
    ] = None,
    llm: Annotated[
        str | None, typer.Option(help="Whose KV it is: a name of `twin models`, or a config.json.")
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(help="Whose pool is compared too: a name of `twin gpus`; default h100_sxm."),
    ] = None,
    kv_cache_dtype: Annotated[
        str | None, typer.Option(help="auto, bfloat16, fp8, int8 …; goes with --llm.")
    ] = None,
    ttl: Annotated[
        float | None, typer.Option(help="Seconds after its last use that ttl keeps a block.")
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="The trace's format; default: by content.")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Processes; default: one a usable core.")
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page.")] = None,
    svg: Annotated[str | None, typer.Option(metavar="FILE", help="Write the chart.")] = None,
    csv: Annotated[str | None, typer.Option(metavar="FILE", help="Write all figures.")] = None,
) -> None:
    """Compare hit rates of eviction policies on a trace, and their distance to the optimum."""
    from twin.caching.accesses import accesses_of
    from twin.report.cache import print_cache
    from twin.workload.readers import read_trace

    files = {"--html": html, "--svg": svg, "--csv": csv}
    check_json(json_file, inputs=[trace])
    for option, name in files.items():
        if name is not None:
            check_file(name, option, inputs=[trace])
    check_distinct({**files, "--json": json_file})
    console = console_for(json_file)
    read = read_trace(trace, format_)
    accesses = accesses_of(read, block_size)
    question = _question(read, accesses, (capacities, policies, ttl), (llm, gpu, kv_cache_dtype))
    found = _compared(trace, accesses, question, jobs)
    print_cache(console, found)
    _write(found, files)
    emit_json(found.as_dict(), json_file)


def _question(
    trace: Trace,
    accesses: BlockAccesses,
    asked: tuple[str | None, str | None, float | None],
    network: tuple[str | None, str | None, str | None],
) -> CacheQuestion:
    """Return what is compared.

    Args:
        trace, accesses: as read, and its look-ups.
        asked: what --capacities, --policies and --ttl say.
        network: what --llm, --gpu and --kv-cache-dtype say.
    """
    from twin.caching.question import CacheQuestion
    from twin.errors import InputError
    from twin.llm.flops import attention_parity_tokens
    from twin.llm.kv_cache import kv_bytes_per_token_per_gpu
    from twin.load.inputs import find_arch
    from twin.paging.eviction.setup import DEFAULT_PARITY_TOKENS, DEFAULT_TTL_S

    (sizes, names, ttl_s), (llm, _, dtype) = asked, network
    if ttl_s is not None and not 0 < ttl_s < float("inf"):
        raise InputError(f"{ttl_s} is no time", where="--ttl", remedy="give seconds above 0")
    if dtype is not None and llm is None:
        raise InputError("needs a network", where="--kv-cache-dtype", remedy="name one with --llm")
    parity, token_bytes = DEFAULT_PARITY_TOKENS, 0
    if llm is not None:
        arch = find_arch(llm, Path.cwd(), "--llm")
        parity = attention_parity_tokens(arch)
        token_bytes = kv_bytes_per_token_per_gpu(arch, dtype or "auto")
    capacities, pool = _capacities(sizes, accesses, token_bytes, network)
    return CacheQuestion(
        policies=_policies(names, timed=trace.timed),
        capacities_blocks=capacities,
        ttl_s=ttl_s or DEFAULT_TTL_S,
        parity_tokens=parity,
        llm=llm or "",
        token_bytes=token_bytes,
        pool=pool,
    )


def _capacities(
    sizes: str | None,
    accesses: BlockAccesses,
    token_bytes: int,
    network: tuple[str | None, str | None, str | None],
) -> tuple[tuple[int, ...], GpuPool | None]:
    """Return the sizes to compare, and the GPU's own pool where that is one of them."""
    from twin.caching.capacities import GPU, capacities_from, names_in
    from twin.caching.comparison import default_capacities, pool_blocks
    from twin.caching.gpu_pool import gpu_pool
    from twin.errors import InputError

    llm, gpu, dtype = network
    if sizes is not None and GPU not in names_in(sizes):
        if gpu is not None:
            raise InputError("its pool is not asked for", where="--gpu",
                             remedy="add gpu to --capacities, or leave them out")  # fmt: skip
        return capacities_from(sizes, accesses, token_bytes), None
    pool = gpu_pool(llm, gpu, dtype, Path.cwd())
    if sizes is None:
        return default_capacities(accesses, pool), pool
    return capacities_from(sizes, accesses, token_bytes, pool_blocks(pool, accesses)), pool


def _policies(names: str | None, *, timed: bool) -> tuple[str, ...]:
    """Return the policies asked for; without times in the trace nothing grows old."""
    from twin.errors import InputError
    from twin.naming import lookup
    from twin.paging.eviction import EVICTION

    if names is None:
        return tuple(name for name in EVICTION if timed or name != "ttl")
    asked = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in asked:
        lookup(EVICTION, name, "eviction policy", where="--policies")
    if "ttl" in asked and not timed:
        raise InputError("ttl needs times, and the trace has none", where="--policies",
                         remedy="leave it out")  # fmt: skip
    return asked


def _compared(
    name: str, accesses: BlockAccesses, question: CacheQuestion, jobs: int | None
) -> CacheComparison:
    from twin.caching.comparison import compare_policies
    from twin.cli.progress import shown_work

    total = len(question.capacities_blocks) * (len(question.policies) + 1)
    if jobs is None:
        # A process is worth starting for a few seconds of work.
        worth = 1 + total * accesses.num_lookups // _LOOKUPS_OF_A_PROCESS
        jobs = min(_usable_cores(), worth)
    started = time.perf_counter()
    with shown_work(total) as show:

        def progress(done: int, what: str) -> None:
            spent_s = time.perf_counter() - started
            show(done, what, spent_s / max(done, 1) * (total - done))

        return compare_policies(name, accesses, question, jobs=jobs, progress=progress)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _write(found: CacheComparison, files: dict[str, str | None]) -> None:
    """Write what was asked for, each whole or not at all."""
    from twin.files import write_text
    from twin.report.cache import cache_csv
    from twin.report.cache_page import cache_page, cache_svg

    makers = {"--html": cache_page, "--svg": cache_svg, "--csv": cache_csv}
    for option, name in files.items():
        if name is not None:
            write_text(name, makers[option](found))
