"""What a forecast for TensorRT-LLM has to say about its scheduler.

Sources, read and not run: `_deduce_max_tokens` in `executor/base_worker.py` gives a request
without max_tokens all that the prompt leaves of max_seq_len, and neither request of
`serve/openai_protocol.py` sets a default; `validate_and_adjust_attention_windows` lowers
max_seq_len to what the KV pool holds; `KVCacheV2Scheduler` turns every policy into MAX_UTILIZATION.
"""

from twin.defaults import ResolvedPolicy
from twin.llm.engine_version import parse_version
from twin.scenario import ScenarioFile
from twin.workload.build import LoadedWorkload

UNHELD = (
    "Scheduling decisions follow rules read from TensorRT-LLM's source; no recording of a running "
    "engine was there to hold them to."
)
_V2_SINCE = (1, 4, 0)
_V2 = (
    "KV cache manager V1 is simulated. Where TensorRT-LLM takes V2, which from 1.4 on is its own "
    "choice for some networks (kv_cache_config.use_kv_cache_manager_v2), it schedules by "
    "MAX_UTILIZATION whatever is set."
)


def trtllm_notes(
    file: ScenarioFile, policy: ResolvedPolicy, workload: LoadedWorkload, blocks: int
) -> list[str]:
    """Return the caveats of TensorRT-LLM's scheduler; nothing for another engine.

    Args:
        file: the validated input.
        policy: with every default resolved.
        workload: whose answers end by a limit that the scheduler knows, or by a stop token.
        blocks: KV blocks of a replica.
    """
    if file.engine.name != "trtllm":
        return []
    notes = [UNHELD]
    if policy.given.trtllm.capacity_scheduler_policy == "MAX_UTILIZATION":
        return notes
    version = parse_version(file.engine.version)
    if version is None or version >= _V2_SINCE:
        notes.append(_V2)
    at_once = reserved_batch(file, policy, workload, blocks)
    if at_once is not None and at_once < policy.max_num_seqs:
        notes.append(_reserved(policy, at_once, blocks))
    return notes


def reserved_batch(
    file: ScenarioFile, policy: ResolvedPolicy, workload: LoadedWorkload, blocks: int
) -> int | None:
    """Return how many requests run at once where each reserves KV for the longest answer.

    A floor: cached prefixes count once. None: the engine reserves no blocks ahead, or each answer
    has a limit that the client set.

    Args:
        file, policy, workload, blocks: as for `trtllm_notes`.
    """
    given = policy.given.trtllm
    if file.engine.name != "trtllm" or given.capacity_scheduler_policy == "MAX_UTILIZATION":
        return None
    if workload.finish != "stop":
        return None
    return _usable(policy, blocks) // _longest(policy)


def _usable(policy: ResolvedPolicy, blocks: int) -> int:
    """Blocks that requests can hold: padded CUDA graphs keep one."""
    return blocks - policy.given.trtllm.cuda_graph_padding


def _longest(policy: ResolvedPolicy) -> int:
    """Blocks of a request that fills max_model_len."""
    return -(-policy.max_model_len // policy.given.trtllm.tokens_per_block)


def _reserved(policy: ResolvedPolicy, at_once: int, blocks: int) -> str:
    given, usable = policy.given.trtllm, _usable(policy, blocks)
    head = (
        f"{given.capacity_scheduler_policy} reserves KV for every answer up to its max_tokens; "
        "answers that end by a stop token (finish: stop) are asked for without, so each request "
        f"reserves max_model_len, {policy.max_model_len:,} tokens: {_longest(policy):,} of "
        f"{usable:,} blocks"
    )
    if not at_once:
        return (
            f"{head}, and none is served here; the engine itself would lower its max_seq_len to "
            f"what fits: set policy.max_model_len to at most {usable * given.tokens_per_block:,}."
        )
    return (
        f"{head}, so about {at_once:,} run at once, however little KV is in use; more do with a "
        "lower policy.max_model_len, with policy.trtllm.capacity_scheduler_policy "
        "MAX_UTILIZATION, or if clients set max_tokens (finish: length)."
    )
