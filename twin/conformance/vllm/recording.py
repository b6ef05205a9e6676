"""A recording, checked and turned into our own types."""

from dataclasses import dataclass
from typing import Any

from twin.conformance.fields import check_object
from twin.conformance.vllm import schema
from twin.conformance.vllm.content import KeyTable, TokenContent
from twin.errors import InputError
from twin.naming import remedy_for
from twin.request import Request
from twin.scheduling.limits import SchedulerLimits
from twin.scheduling.queues import QUEUES


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded.

    Attributes:
        where: the file, for messages.
        engine: engine and version.
        limits: the policy it ran with.
        requests: by recorded id.
        steps: one object a schedule call, as read.
        iterations: `engine_iterations` of an asynchronous recording, else empty.
    """

    where: str
    engine: str
    limits: SchedulerLimits
    requests: dict[str, Request]
    steps: list[dict[str, Any]]
    iterations: list[list[Any]]


def read_recording(document: dict[str, Any], where: str) -> Recording:
    """Return the recording in a parsed document.

    Raises:
        InputError: a key is absent, wrong, or asks for what the scheduler does not model.
    """
    check_object(document, {"schema": schema.DOCUMENT["schema"]}, where)
    asynchronous = _is_asynchronous(document["schema"], where)
    check_object(document, schema.ASYNCHRONOUS_DOCUMENT if asynchronous else schema.DOCUMENT, where)
    limits = _limits(document["config"], asynchronous, where)
    _check_effective(document["effective"], limits, where)
    requests = _requests(document["requests"], where)
    _check_prompts(requests, limits, where)
    _check_steps(document["steps"], asynchronous, requests, where)
    if asynchronous:
        _check_iterations(document["engine_iterations"], len(document["steps"]), where)
    return Recording(
        where=where,
        engine=f"vLLM {document['vllm_version']}",
        limits=limits,
        requests=requests,
        steps=document["steps"],
        iterations=document["engine_iterations"] if asynchronous else [],
    )


def _is_asynchronous(value: int, where: str) -> bool:
    if value not in (schema.SYNCHRONOUS, schema.ASYNCHRONOUS):
        raise InputError(
            f"'schema' is {value}",
            where=where,
            remedy="1 (synchronous) and 2 (asynchronous) are known",
        )
    return value == schema.ASYNCHRONOUS


def _limits(config: dict[str, Any], asynchronous: bool, where: str) -> SchedulerLimits:
    where = f"{where}, 'config'"
    check_object(config, schema.CONFIG, where)
    if config["policy"] not in QUEUES:
        raise InputError(
            f"'policy' is {config['policy']!r}",
            where=where,
            remedy=remedy_for(config["policy"], QUEUES),
        )
    names = [name for name in schema.CONFIG if name != "policy"]
    values = {name: config[name] for name in names}
    try:
        return SchedulerLimits(
            **values, scheduling_policy=config["policy"], async_scheduling=asynchronous
        )
    except InputError as error:
        raise InputError(error.problem, where=where, remedy=error.remedy) from None


def _check_effective(effective: dict[str, Any], limits: SchedulerLimits, where: str) -> None:
    """Refuse a recording made with what the scheduler does not model, such as speculation."""
    modelled = {
        "max_num_scheduled_tokens": limits.max_num_batched_tokens,
        "max_num_running_reqs": limits.max_num_seqs,
        "max_num_active_reqs": limits.max_num_seqs,
        "num_lookahead_tokens": 0,
        "watermark_blocks": limits.watermark_blocks,
        "async_scheduling": limits.async_scheduling,
        "batch_queue_size": 2,
        "defer_block_free": False,
    }
    for key, value in modelled.items():
        if key in effective and effective[key] != value:
            raise InputError(
                f"{key!r} is {effective[key]!r}",
                where=f"{where}, 'effective'",
                remedy=f"only recordings with {value!r} can be replayed",
            )


def _requests(rows: list[dict[str, Any]], where: str) -> dict[str, Request]:
    """Return the requests; an index is the rank of its id, as ties are broken by id."""
    for position, row in enumerate(rows):
        place = f"{where}, 'requests'[{position}]"
        check_object(row, schema.REQUEST, place)
        if "stop_at" in row:
            check_object(row, {"stop_at": schema.STOP_AT}, place)
    table = KeyTable()
    requests: dict[str, Request] = {}
    for index, row in enumerate(sorted(rows, key=lambda row: str(row["id"]))):
        name = row["id"]
        if name in requests:
            raise InputError(f"request id {name!r} comes twice", where=f"{where}, 'requests'")
        requests[name] = Request(
            index=index,
            arrival_s=float(row["arrival_time"]),
            prompt_tokens=len(row["prompt_token_ids"]),
            max_tokens=row["max_tokens"],
            stop_after_tokens=row.get("stop_at"),
            content=TokenContent(row["prompt_token_ids"], table),
            priority=row["priority"],
            name=name,
        )
    return requests


def _check_prompts(requests: dict[str, Request], limits: SchedulerLimits, where: str) -> None:
    for name, request in requests.items():
        if request.prompt_tokens > limits.max_model_len:
            raise InputError(
                f"request {name!r} has {request.prompt_tokens} prompt tokens, more than "
                f"max_model_len {limits.max_model_len}",
                where=f"{where}, 'requests'",
                remedy="the engine turns such a request away",
            )


def _check_steps(
    steps: list[dict[str, Any]], asynchronous: bool, requests: dict[str, Request], where: str
) -> None:
    if not steps:
        raise InputError("'steps' is empty", where=where, remedy="give a recording with steps")
    added: set[str] = set()
    for index, step in enumerate(steps):
        place = f"{where}, 'steps'[{index}]"
        if asynchronous:
            check_object(step, schema.ASYNCHRONOUS_STEP, place)
            for update in step["updates_after"]:
                check_object(update, schema.UPDATE, f"{place}, 'updates_after'")
        else:
            check_object(step, schema.SYNCHRONOUS_STEP, place)
        for name in step["added"]:
            if name not in requests or name in added:
                fault = "twice" if name in added else "which is not among the requests"
                raise InputError(f"'added' names {name!r} {fault}", where=place)
            added.add(name)


def _check_iterations(rows: list[list[Any]], steps: int, where: str) -> None:
    scheduling = sum(row[0] is not None for row in rows)
    if scheduling != steps or rows[0][0] is None:
        raise InputError(
            f"'engine_iterations' schedules {scheduling} steps",
            where=where,
            remedy=f"it begins with a schedule call and has one for each of the {steps} steps",
        )
