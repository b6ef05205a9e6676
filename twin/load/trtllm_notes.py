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
    if workload.finish == "stop":
        notes += _reserved(policy, blocks)
    return notes


def _reserved(policy: ResolvedPolicy, blocks: int) -> list[str]:
    """Return what reserving every answer up to max_model_len does, where it limits the batch."""
    given = policy.given.trtllm
    usable = blocks - given.cuda_graph_padding
    longest = policy.max_model_len
    each = -(-longest // given.tokens_per_block)
    at_once = usable // each
    if at_once >= policy.max_num_seqs:
        return []
    head = (
        f"{given.capacity_scheduler_policy} reserves KV for every answer up to its max_tokens; "
        "answers that end by a stop token (finish: stop) are asked for without, so each request "
        f"reserves max_model_len, {longest:,} tokens: {each:,} of {usable:,} blocks"
    )
    if not at_once:
        return [
            f"{head}, and none is served here; the engine itself would lower its max_seq_len to "
            f"what fits: set policy.max_model_len to at most {usable * given.tokens_per_block:,}."
        ]
    return [
        f"{head}, so about {at_once:,} run at once, however little KV is in use; more do with a "
        "lower policy.max_model_len, with policy.trtllm.capacity_scheduler_policy "
        "MAX_UTILIZATION, or if clients set max_tokens (finish: length)."
    ]
