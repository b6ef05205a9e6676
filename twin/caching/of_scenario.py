"""The eviction comparison on a scenario's own requests, beside what its pool holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from twin.caching.accesses import BlockAccesses
from twin.caching.capacities import MOST_BLOCKS
from twin.caching.comparison import (
    CacheComparison,
    compare_policies,
    default_capacities,
    pool_blocks,
)
from twin.caching.gpu_pool import GpuPool
from twin.caching.question import CacheQuestion
from twin.engine.run import simulate
from twin.errors import InputError
from twin.llm.flops import attention_parity_tokens
from twin.llm.kv_cache import kv_bytes_per_token_per_gpu
from twin.paging.eviction import EVICTION
from twin.paging.eviction.setup import DEFAULT_TTL_S
from twin.request import Request
from twin.scenario import Scenario, pools_of
from twin.workload.build import LoadedWorkload
from twin.workload.source import RequestSource
from twin.workload.spec import SessionWorkload, SharedPrefixWorkload, SyntheticWorkload
from twin.workload.spec import TraceWorkload as TraceSpec

# Request keys pack a request's number and a block's (see `twin.request`).
_INDEX_BITS = 24

Progress = Callable[[int, int], None]


def tells_prefixes(scenario: Scenario) -> bool:
    """Whether a scenario's workload says which prompts share a prefix."""
    spec, traces = scenario.workload.spec, scenario.workload.traces
    if isinstance(spec, TraceSpec):
        return traces[spec.path, spec.format].segments is not None
    if isinstance(spec, SyntheticWorkload):
        return spec.prefixes is not None
    return isinstance(spec, SessionWorkload | SharedPrefixWorkload)


def compare_own(
    scenario: Scenario,
    progress: Progress | None = None,
    *,
    engine: str = "fast",
) -> CacheComparison:
    """Replay a scenario's own requests under every eviction policy and the optimum.

    Blocks are those of its trace where that has any, else the engine's; full ones alone count.
    Requests that follow upon others (sessions, stages) come when a simulation lets them. Sizes are
    every second one of `default_capacities` and the KV pool of a replica.

    Args:
        scenario: of several pools of replicas the first counts.
        progress: called with (replays done, all of them).
        engine: of that simulation.

    Raises:
        InputError: its workload does not say what prompts share, or fills no block.
    """
    if not tells_prefixes(scenario):
        raise InputError(
            "the workload does not tell which prompts share a prefix",
            where=scenario.file.name,
            remedy="bring a trace with block identities, as Mooncake's hash_ids",
        )
    accesses = accesses_of_requests(requests_of(scenario, engine), _block_tokens(scenario))
    question = _question(scenario, accesses)
    total = len(question.capacities_blocks) * (len(question.policies) + 1)

    def heard(done: int, what: str) -> None:  # noqa: ARG001
        if progress is not None:
            progress(done, total)

    return compare_policies(scenario.file.name, accesses, question, progress=heard)


def requests_of(scenario: Scenario, engine: str = "fast") -> list[Request]:
    """Return the requests of a scenario in order of arrival; it is simulated if that takes one."""
    context = max(pool.scenario.policy.max_model_len for pool in pools_of(scenario))
    seed = np.random.SeedSequence(scenario.file.seed)
    source = scenario.workload.source(seed, context)
    if not source.hears_of_ends:
        return list(source.start())
    workload = _Listening(scenario.workload.spec, scenario.workload.traces)
    simulate(replace(scenario, workload=workload), engine=engine)
    return sorted(workload.kept, key=lambda request: (request.arrival_s, request.index))


def accesses_of_requests(requests: Sequence[Request], block_tokens: int) -> BlockAccesses:
    """Return what the prompts of requests look up: their full blocks.

    Args:
        requests: in order of arrival; one without content shares nothing.
        block_tokens: tokens a block.

    Raises:
        InputError: no prompt fills a block.
    """
    counts = np.array([request.prompt_tokens // block_tokens for request in requests], np.int64)
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    keys = np.empty(int(offsets[-1]), dtype=np.int64)
    for request, start, end in zip(requests, offsets[:-1].tolist(), offsets[1:].tolist(),
                                   strict=True):  # fmt: skip
        if request.content is None:
            keys[start:end] = ~((request.index << _INDEX_BITS) + np.arange(end - start))
        else:
            keys[start:end] = request.content.block_keys(block_tokens, request.prompt_tokens)
    if not keys.size:
        raise InputError(f"no prompt fills a block of {block_tokens} tokens")
    distinct, dense = np.unique(keys, return_inverse=True)
    arrival_s = np.array([request.arrival_s for request in requests])
    return BlockAccesses(dense, offsets, arrival_s, block_tokens, False, int(distinct.size))


@dataclass(frozen=True)
class _Listening(LoadedWorkload):
    """A workload that keeps what its source sends."""

    kept: list[Request] = field(default_factory=list)

    def source(self, seed: np.random.SeedSequence, max_model_len: int) -> RequestSource:
        """See `LoadedWorkload.source`."""
        return _Heard(LoadedWorkload.source(self, seed, max_model_len), self.kept)


class _Heard:
    """A source, with all it sends kept (see `RequestSource`)."""

    def __init__(self, source: RequestSource, kept: list[Request]) -> None:
        self._source, self._kept = source, kept
        self.hears_of_ends = source.hears_of_ends

    def start(self) -> Sequence[Request]:
        """See `RequestSource.start`."""
        return self._sent(self._source.start())

    def on_end(self, request: Request, end_s: float, *, rejected: bool) -> Sequence[Request]:
        """See `RequestSource.on_end`."""
        return self._sent(self._source.on_end(request, end_s, rejected=rejected))

    @property
    def expected_requests(self) -> int | None:
        """See `RequestSource.expected_requests`."""
        return self._source.expected_requests

    def _sent(self, requests: Sequence[Request]) -> Sequence[Request]:
        self._kept.extend(requests)
        return requests


def _block_tokens(scenario: Scenario) -> int:
    spec = scenario.workload.spec
    if isinstance(spec, TraceSpec):
        segments = scenario.workload.traces[spec.path, spec.format].segments
        if segments is not None and segments.block_tokens is not None:
            return segments.block_tokens
    return scenario.policy.block_size


def _question(scenario: Scenario, accesses: BlockAccesses) -> CacheQuestion:
    """Return what is compared: a replica's own pool is one of the sizes."""
    given, file = scenario.policy.given, scenario.file
    # One block is the null block, or less than nothing to speak of.
    tokens = max(1, scenario.num_gpu_blocks - 1) * scenario.policy.block_size
    pool = GpuPool(file.llm, file.gpu, file.parallelism.tp, tokens)
    sizes = {*default_capacities(accesses)[::-2], min(MOST_BLOCKS, pool_blocks(pool, accesses))}
    timed = bool(np.ptp(accesses.arrival_s))
    return CacheQuestion(
        policies=tuple(name for name in EVICTION if timed or name != "ttl"),
        capacities_blocks=tuple(sorted(sizes)),
        ttl_s=given.eviction_ttl_s or DEFAULT_TTL_S,
        parity_tokens=attention_parity_tokens(scenario.arch),
        llm=file.llm,
        token_bytes=kv_bytes_per_token_per_gpu(scenario.arch, given.kv_cache_dtype),
        pool=pool,
    )
