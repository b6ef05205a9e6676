"""A recording of SGLang, checked and turned into our own types."""

from dataclasses import dataclass
from typing import Any

from twin.conformance.fields import check_object, is_boolean, is_integer, is_number
from twin.conformance.sglang import schema
from twin.conformance.sglang.content import TokenContent
from twin.conformance.vllm.content import KeyTable
from twin.errors import InputError
from twin.request import Request
from twin.scheduling.sglang import SglangLimits

_UNGIVEN_PRIORITY = -(2**63)
"""What SGLang gives a request without priority when it schedules by priority."""

_ENVIRONMENT: dict[str, tuple[str, type]] = {
    "SGLANG_INIT_NEW_TOKEN_RATIO": ("init_new_token_ratio", float),
    "SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR": ("min_new_token_ratio_factor", float),
    "SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS": ("new_token_ratio_decay_steps", int),
    "SGLANG_RETRACT_DECODE_STEPS": ("retract_decode_steps", int),
    "SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION": ("clip_max_new_tokens_estimation", int),
    "SGLANG_ENABLE_WAITING_PREFIX_REFRESH": ("waiting_prefix_refresh", bool),
    "IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD": ("in_batch_check_threshold", int),
    "IN_BATCH_PREFIX_CACHING_DEPRIORITIZE_THRESHOLD": ("in_batch_deprioritize_threshold", int),
}
"""Environment variable to the limit it sets and how its text is read."""

_WORDS = {int: "a whole number", float: "a number"}

_NO_DECISION = {"SGLANG_DISABLE_CONSECUTIVE_PREFILL_OVERLAP"}
"""Variables that change when a result is processed within a turn, but no decision."""

_OPTIONAL = {
    "disable_priority_preemption": is_boolean,
    "schedule_low_priority_values_first": is_boolean,
    "priority_scheduling_preemption_threshold": is_integer,
}
"""Options that stand in `config` only if given."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded.

    Attributes:
        where: the file, for messages.
        engine: engine and version.
        limits: the policy it ran with.
        requests: by recorded id.
        stops: which sample of a request is the EOS token, from 1, by id.
        arrivals: turn of the clock at which each request arrives, by id.
        steps: one object a turn of the loop, as read.
        outputs: what became of each request, as read.
    """

    where: str
    engine: str
    limits: SglangLimits
    requests: dict[str, Request]
    stops: dict[str, int]
    arrivals: dict[str, int]
    steps: list[dict[str, Any]]
    outputs: dict[str, list[int]]


def read_recording(document: dict[str, Any], where: str) -> Recording:
    """Return the recording in a parsed document.

    Raises:
        InputError: a key is absent, wrong, or asks for what the scheduler does not model.
    """
    check_object(document, {"schema": schema.DOCUMENT["schema"]}, where)
    if document["schema"] != schema.VERSION:
        raise InputError(
            f"'schema' is {document['schema']}", where=where, remedy=f"{schema.VERSION} is known"
        )
    check_object(document, schema.DOCUMENT, where)
    limits = _limits(document["config"], document["effective"], where)
    _check_effective(document["effective"], limits, where)
    requests = _requests(document["requests"], limits, where)
    _check_steps(document["steps"], requests, where)
    return Recording(
        where=where,
        engine=f"SGLang {document['sglang_version']}",
        limits=limits,
        requests=requests,
        stops={row["id"]: row["stop_at"] for row in document["requests"] if row["stop_at"]},
        arrivals={row["id"]: row["arrival_step"] for row in document["requests"]},
        steps=document["steps"],
        outputs=document["outputs"],
    )


def _limits(config: dict[str, Any], effective: dict[str, Any], where: str) -> SglangLimits:
    check_object(config, schema.CONFIG, f"{where}, 'config'")
    check_object(effective, schema.EFFECTIVE, f"{where}, 'effective'")
    chunk = effective["chunked_prefill_size"]
    try:
        return SglangLimits(
            max_total_num_tokens=effective["max_total_num_tokens"],
            # Without a given length the model's own holds; it shows in the longest request.
            context_length=config["context_length"] or effective["max_req_len"] + 1,
            max_running_requests=effective["max_running_requests"],
            page_size=effective["page_size"],
            chunked_prefill_size=-1 if chunk is None else chunk,
            max_prefill_tokens=effective["max_prefill_tokens"],
            prefill_max_requests=config["prefill_max_requests"],
            schedule_policy=config["schedule_policy"],
            schedule_conservativeness=config["schedule_conservativeness"],
            disable_radix_cache=config["disable_radix_cache"],
            enable_mixed_chunk=config["enable_mixed_chunk"],
            radix_eviction_policy=config["radix_eviction_policy"],
            retraction_policy=config["retraction_policy"],
            enable_priority_scheduling=config["enable_priority_scheduling"],
            overlap=effective["enable_overlap"],
            **_given(config, f"{where}, 'config'"),
        )
    except InputError as error:
        raise InputError(error.problem, where=error.where or where, remedy=error.remedy) from None


def _given(config: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the limits set by optional keys and by environment variables."""
    values: dict[str, Any] = {}
    for name, check in _OPTIONAL.items():
        if name in config:
            if not check(config[name]):
                raise InputError(f"{name!r} is {config[name]!r}", where=where)
            values[name] = config[name]
    tlru = config.get("radix_eviction_policy_config") or {}
    for key, name in (
        ("threshold", "tlru_threshold"),
        ("next_prompt_estimate", "tlru_next_prompt_estimate"),
    ):
        if isinstance(tlru, dict) and is_integer(tlru.get(key)):
            values[name] = tlru[key]
    for variable, text in config["env"].items():
        if variable in _NO_DECISION:
            continue
        if variable not in _ENVIRONMENT:
            raise InputError(
                f"the environment variable {variable!r} is not modelled",
                where=where,
                remedy="known are " + ", ".join(sorted({*_ENVIRONMENT, *_NO_DECISION})),
            )
        name, kind = _ENVIRONMENT[variable]
        values[name] = _read(str(text), kind, variable, where)
    return values


def _read(text: str, kind: type, variable: str, where: str) -> Any:
    if kind is bool:
        return text.lower() in ("1", "true", "yes", "y")
    try:
        return kind(text)
    except ValueError:
        raise InputError(
            f"{variable!r} is {text!r}", where=where, remedy=f"give {_WORDS[kind]}"
        ) from None


def _check_effective(effective: dict[str, Any], limits: SglangLimits, where: str) -> None:
    """Refuse a recording made with what the scheduler does not model."""
    init = min(limits.init_new_token_ratio * limits.schedule_conservativeness, 1.0)
    modelled = {
        "tree_cache": "UnifiedRadixCache",
        "max_req_len": limits.max_req_len,
        "is_mixed_chunk": limits.mixed,
        "event_loop": "overlap" if limits.overlap else "normal",
        "ratio_init": init,
    }
    for key, value in modelled.items():
        got = effective.get(key, value)
        equal = abs(got - value) < 1e-9 if is_number(got) and is_number(value) else got == value
        if not equal:
            raise InputError(
                f"{key!r} is {got!r}",
                where=f"{where}, 'effective'",
                remedy=f"only recordings with {value!r} can be replayed",
            )


def _requests(rows: list[dict[str, Any]], limits: SglangLimits, where: str) -> dict[str, Request]:
    table = KeyTable()
    requests: dict[str, Request] = {}
    for index, row in enumerate(rows):
        check_object(row, schema.REQUEST, f"{where}, 'requests'[{index}]")
        name, priority = row["id"], row["priority"]
        if name in requests:
            raise InputError(f"request id {name!r} comes twice", where=f"{where}, 'requests'")
        if priority is None:
            priority = _UNGIVEN_PRIORITY if limits.enable_priority_scheduling else 0
        if not limits.schedule_low_priority_values_first:
            priority = -priority
        requests[name] = Request(
            index=index,
            arrival_s=float(row["arrival_step"]),
            prompt_tokens=len(row["prompt_token_ids"]),
            max_tokens=row["max_tokens"],
            content=TokenContent(row["prompt_token_ids"], None, table),
            priority=priority,
            name=name,
            ignore_eos=row["ignore_eos"],
        )
    return requests


def _check_steps(steps: list[dict[str, Any]], requests: dict[str, Request], where: str) -> None:
    if not steps:
        raise InputError("'steps' is empty", where=where, remedy="give a recording with steps")
    added: set[str] = set()
    for index, step in enumerate(steps):
        place = f"{where}, 'steps'[{index}]"
        check_object(step, schema.STEP, place)
        for name in step["added"]:
            if name not in requests or name in added:
                fault = "twice" if name in added else "which is not among the requests"
                raise InputError(f"'added' names {name!r} {fault}", where=place)
            added.add(name)
