"""What a recording of SGLang's scheduler holds, key by key."""

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

VERSION = 1
"""Value of `schema`."""

_INTEGER = (is_integer, "a whole number")
_NUMBER = (is_number, "a number")
_BOOLEAN = (is_boolean, "true or false")
_TEXT = (is_text, "a string")
_OBJECT = (is_object, "an object")
_IDS = (list_of(is_text), "a list of request ids")
_ID_OR_NULL = (optional(is_text), "null or a request id")


def _between(least: int, most: int) -> tuple[Check, str]:
    return (
        lambda value: is_integer(value) and least <= value <= most,
        f"a whole number from {least} to {most}",
    )


def _or_null(entry: tuple[Check, str]) -> tuple[Check, str]:
    return optional(entry[0]), f"null or {entry[1]}"


# Upper limits keep a damaged number from asking for all memory; no server comes near them.
_TOKENS = _between(1, 100_000_000)

DOCUMENT: Schema = {
    "schema": _INTEGER,
    "name": _TEXT,
    "sglang_version": _TEXT,
    "config": _OBJECT,
    "effective": _OBJECT,
    "requests": (list_of(is_object), "a list of requests"),
    "outputs": (
        object_of(row(*[is_integer] * 5)),
        "[prompt, outputs, limit, retractions, cached tokens] by request id",
    ),
    "steps": (list_of(is_object), "a list of turns"),
    "summary": _OBJECT,
}

CONFIG: Schema = {
    "schedule_policy": _TEXT,
    "schedule_conservativeness": _NUMBER,
    "enable_mixed_chunk": _BOOLEAN,
    "disable_radix_cache": _BOOLEAN,
    "radix_eviction_policy": _TEXT,
    "prefill_max_requests": _or_null(_TOKENS),
    "enable_priority_scheduling": _BOOLEAN,
    "retraction_policy": _TEXT,
    "context_length": _or_null(_TOKENS),
    "env": _OBJECT,
}

EFFECTIVE: Schema = {
    "max_running_requests": _TOKENS,
    "max_total_num_tokens": _TOKENS,
    "max_prefill_tokens": _TOKENS,
    "chunked_prefill_size": _or_null((is_integer, "a whole number")),
    "page_size": _between(1, 65_536),
    "max_req_len": _TOKENS,
    "enable_overlap": _BOOLEAN,
}

REQUEST: Schema = {
    "id": _TEXT,
    "prompt_token_ids": (
        lambda value: list_of(is_integer)(value) and len(value) > 0,
        "a list of token ids, not empty",
    ),
    "max_tokens": _between(0, 100_000_000),
    "arrival_step": _INTEGER,
    "ignore_eos": _BOOLEAN,
    "priority": _or_null(_INTEGER),
    "stop_at": _or_null(_between(1, 100_000_000)),
}

STEP: Schema = {
    "i": _INTEGER,
    "clock": _INTEGER,
    "added": _IDS,
    "mode": (optional(is_text), "null or a mode"),
    "processed": (list_of(is_object), "a list of results"),
    "finished": (list_of(row(is_text, is_text, is_integer)), "a list of [id, reason, outputs]"),
    "retracted": (list_of(row(is_text, is_integer, is_integer)), "a list of [id, prompt, outputs]"),
    "aborted": (lambda value: isinstance(value, list), "a list"),
    "before": _OBJECT,
    "waiting_before": _IDS,
    "continuing": _ID_OR_NULL,
    "chunked": _ID_OR_NULL,
    "running_after": _IDS,
    "waiting_after": _IDS,
    "batch_is_full": _BOOLEAN,
    "after": _OBJECT,
    "end": _OBJECT,
}
