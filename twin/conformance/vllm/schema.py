"""What a recording of vLLM's scheduler holds, key by key."""

from twin.conformance.fields import (
    Check,
    Schema,
    is_boolean,
    is_integer,
    is_number,
    is_object,
    is_text,
    list_of,
    object_of,
    optional,
    row,
)

SYNCHRONOUS, ASYNCHRONOUS = 1, 2
"""Values of `schema`."""

_INTEGER = (is_integer, "a whole number")
_NUMBER = (is_number, "a number")
_BOOLEAN = (is_boolean, "true or false")
_TEXT = (is_text, "a string")
_OBJECT = (is_object, "an object")
_IDS = (list_of(is_text), "a list of request ids")
_ID_TOKENS = (list_of(row(is_text, is_integer)), "a list of [request id, tokens]")
_BLOCK_IDS = (
    optional(object_of(list_of(is_integer))),
    "null or the block ids by request id",
)


def _at_least(least: int, most: int) -> tuple[Check, str]:
    return (
        lambda value: is_integer(value) and least <= value <= most,
        f"a whole number from {least} to {most}",
    )


# Upper limits keep a damaged number from asking for all memory; no engine comes near them.
_SIZE = _at_least(1, 4_000_000)

DOCUMENT: Schema = {
    "schema": _INTEGER,
    "name": _TEXT,
    "vllm_version": _TEXT,
    "config": _OBJECT,
    "effective": _OBJECT,
    "requests": (list_of(is_object), "a list of requests"),
    "steps": (list_of(is_object), "a list of steps"),
    "summary": _OBJECT,
}

ASYNCHRONOUS_DOCUMENT: Schema = {
    **DOCUMENT,
    "engine_iterations": (
        list_of(row(optional(is_integer), optional(is_integer), is_boolean)),
        "a list of [schedule index or null, processed step or null, executed]",
    ),
}

CONFIG: Schema = {
    "policy": _TEXT,
    "max_num_seqs": _SIZE,
    "max_num_batched_tokens": _SIZE,
    "max_model_len": _SIZE,
    "block_size": _SIZE,
    "num_gpu_blocks": _at_least(2, 4_000_000),
    "enable_chunked_prefill": _BOOLEAN,
    "long_prefill_token_threshold": _at_least(0, 4_000_000),
    "enable_prefix_caching": _BOOLEAN,
    "watermark": _NUMBER,
    "scheduler_reserve_full_isl": _BOOLEAN,
}

REQUEST: Schema = {
    "id": _TEXT,
    "prompt_token_ids": (
        lambda value: bool(value) and list_of(is_integer)(value),
        "a list of token ids, not empty",
    ),
    "max_tokens": _at_least(1, 2**62),
    "arrival_step": _INTEGER,
    "arrival_time": _NUMBER,
    "priority": _INTEGER,
}

STOP_AT = (optional(_at_least(1, 2**62)[0]), "null or the number of the output that stops it")

_PREFIX = (object_of(is_integer), "an object of counters")

_SCHEDULED: Schema = {
    "step": _INTEGER,
    "added": _IDS,
    "scheduled": _ID_TOKENS,
    "total": _INTEGER,
    "new": _ID_TOKENS,
    "resumed": (list_of(is_text), "a list of request ids, empty in this version"),
    "preempted": _IDS,
    "running_after_schedule": _IDS,
    "waiting_after_schedule": _INTEGER,
    "free_blocks_after_schedule": _INTEGER,
    "block_ids": _BLOCK_IDS,
}

SYNCHRONOUS_STEP: Schema = {
    **_SCHEDULED,
    "sampled": _IDS,
    "finished": _IDS,
    "free_blocks_after_update": _INTEGER,
    "running_after_update": _INTEGER,
    "waiting_after_update": _INTEGER,
    "kv_usage": _NUMBER,
    "prefix_cache": _PREFIX,
}

ASYNCHRONOUS_STEP: Schema = {
    **_SCHEDULED,
    "idle_before": _BOOLEAN,
    "in_flight_before": (list_of(is_integer), "a list of steps"),
    "processed_before": _INTEGER,
    "finished_ids_sent": _IDS,
    "running_state": (
        list_of(row(is_text, is_integer, is_integer, is_integer, is_integer)),
        "a list of [request id, computed, known, placeholders, in flight]",
    ),
    "stale": _ID_TOKENS,
    "will_sample": _IDS,
    "updates_after": (list_of(is_object), "a list of updates"),
}

UPDATE: Schema = {
    "of": _INTEGER,
    "tokens_for": _IDS,
    "stale": _IDS,
    "discarded": _IDS,
    "finished": _IDS,
    "finish_reasons": (list_of(is_text), "a list of reasons"),
    "finished_while_waiting": _IDS,
    "free_blocks_after_update": _INTEGER,
    "running_after_update": _IDS,
    "waiting_after_update": _INTEGER,
    "kv_usage": _NUMBER,
    "prefix_cache": _PREFIX,
}
