"""ShareGPT-style JSON lists, with lengths in tokens (no tokenizer is run here).

Two shapes, one a file:

1. One object a request: a prompt length under any of `PROMPT_KEYS`, an answer length under any
   of `OUTPUT_KEYS`, perhaps a time in seconds under any of `TIME_KEYS`, perhaps `id`.
2. One object a conversation: `conversations` (or `messages`) is a list of turns, each with
   `from` (or `role`) and its length under any of `TURN_KEYS`, perhaps a time. Every answer (role
   gpt, assistant, chatgpt, bing, bard, model) makes a request whose prompt is all that came
   before it; later turns share that prefix, the earlier answers included. A turn's time is its
   own, else the conversation's; an answer arrives at the time of the turn before it.

Without times every request arrives at 0 unless the workload sets `arrivals`.
"""

from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.workload.readers.base import Records
from twin.workload.readers.bounded import json_document
from twin.workload.readers.fields import label, place, timestamp, token_count
from twin.workload.segments import SegmentBuilder
from twin.workload.trace import Finish

PROMPT_KEYS = (
    "prompt_tokens", "prompt_len", "prompt_length", "input_tokens", "input_len", "input_length",
)  # fmt: skip
OUTPUT_KEYS = (
    "output_tokens", "output_len", "output_length", "completion_tokens", "generated_tokens",
)  # fmt: skip
TIME_KEYS = ("arrival_s", "arrival_time", "arrival", "timestamp")
TURN_KEYS = ("tokens", "num_tokens", "token_count", "length")
ANSWER_ROLES = frozenset({"gpt", "assistant", "chatgpt", "bing", "bard", "model"})

_TOKENS_REMEDY = (
    "no tokenizer is run here: write each length as `tokens` in its turn, or records with "
    "prompt_tokens and output_tokens"
)


class SharegptJson:
    """See the module."""

    description = "ShareGPT-style JSON list with lengths in tokens, requests or conversations"
    finish: Finish = "stop"

    def recognises(self, head: str) -> bool:
        """Whether the file starts as a list of objects."""
        start = head.lstrip()
        return start.startswith("[") and start[1:].lstrip()[:1] in ("{", "]")

    def read(self, path: Path) -> Records:
        """See `Reader.read`."""
        document = json_document(path)
        if not isinstance(document, list):
            raise InputError("is not a JSON list", where=str(path), remedy="write [ {…}, {…} ]")
        for row, record in enumerate(document, 1):
            if not isinstance(record, dict):
                raise InputError("is not an object", where=place(path, row), remedy="write {…}")
        talks = [_turns(record) is not None for record in document]
        if any(talks) and not all(talks):
            raise InputError(
                "requests and conversations are mixed",
                where=place(path, talks.index(not talks[0]) + 1),
                remedy="give one shape in a file",
            )
        return _conversations(document, path) if any(talks) else _requests(document, path)


def _requests(document: list[dict[str, Any]], path: Path) -> Records:
    records, times_s = Records(), list[float]()
    timed = bool(document) and _first_key(document[0], TIME_KEYS) is not None
    named = bool(document) and all("id" in record for record in document)
    for row, record in enumerate(document, 1):
        records.prompt_tokens.append(_length(record, PROMPT_KEYS, path, row))
        records.output_tokens.append(_length(record, OUTPUT_KEYS, path, row))
        records.rows.append(row)
        times_s.append(_time_s(record, timed, path, row))
    records.times_s = times_s
    records.names = [label(record["id"]) for record in document] if named else None
    records.timed = timed
    return records


def _length(record: dict[str, Any], keys: tuple[str, ...], path: Path, row: int) -> int:
    key = _first_key(record, keys)
    if key is None:
        raise InputError(
            f"no length under {keys[0]!r} or another of its names",
            where=place(path, row),
            remedy=_TOKENS_REMEDY,
        )
    return token_count(record[key], key, path, row)


def _time_s(record: dict[str, Any], timed: bool, path: Path, row: int) -> float:
    key = _first_key(record, TIME_KEYS)
    if (key is not None) != timed:
        raise InputError(
            f"the time is {'missing' if timed else 'given here first'}",
            where=place(path, row),
            remedy="give it in every record or in none",
        )
    return 0.0 if key is None else timestamp(record[key], key, path, row)


def _conversations(document: list[dict[str, Any]], path: Path) -> Records:
    records = Records(in_order=False, session=[], turn=[])
    reading = _ConversationReading(records, path)
    for row, record in enumerate(document, 1):
        reading.take(record, row)
    records.times_s = reading.times_s
    records.segments = reading.builder.build()
    if reading.untimed and any(reading.times_s):
        raise InputError(
            "some answers have a time and some do not",
            where=place(path, reading.untimed),
            remedy="give a time in every conversation or in none",
        )
    records.timed = not reading.untimed
    if reading.silent:
        records.notes.append(f"conversations without an answer, left out: {reading.silent}")
    return records


class _ConversationReading:
    """Turns conversations into requests, one an answer."""

    def __init__(self, records: Records, path: Path) -> None:
        self.records = records
        self.path = path
        self.times_s: list[float] = []
        self.builder = SegmentBuilder()
        self.untimed = 0
        self.silent = 0

    def take(self, record: dict[str, Any], row: int) -> None:
        """Read one conversation."""
        ids, ends, context, turn = list[int](), list[int](), 0, 0
        time_s = self._time_s(record, row)
        for message in _turns(record) or ():
            if not isinstance(message, dict):
                raise InputError("a turn is not an object", where=place(self.path, row))
            tokens = self._tokens(message, row)
            segment = self.builder.fresh_id()
            if str(message.get("from", message.get("role"))).lower() in ANSWER_ROLES:
                if context == 0:
                    raise InputError(
                        "starts with an answer",
                        where=place(self.path, row),
                        remedy="a conversation starts with a prompt",
                    )
                self._add(row, time_s, context, tokens)
                self.builder.add_segments(ids, ends, segment)
                self._number(row, turn)
                turn += 1
            own_s = self._time_s(message, row)
            time_s = time_s if own_s is None else own_s
            context += tokens
            ids.append(segment)
            ends.append(context)
        self.silent += turn == 0

    def _add(self, row: int, time_s: float | None, prompt: int, output: int) -> None:
        if time_s is None:
            self.untimed = self.untimed or row
        self.times_s.append(time_s or 0.0)
        self.records.prompt_tokens.append(prompt)
        self.records.output_tokens.append(output)
        self.records.rows.append(row)

    def _number(self, row: int, turn: int) -> None:
        if self.records.session is not None and self.records.turn is not None:
            self.records.session.append(row - 1)
            self.records.turn.append(turn)

    def _time_s(self, record: dict[str, Any], row: int) -> float | None:
        key = _first_key(record, TIME_KEYS)
        return None if key is None else timestamp(record[key], key, self.path, row)

    def _tokens(self, message: dict[str, Any], row: int) -> int:
        key = _first_key(message, TURN_KEYS)
        if key is None:
            raise InputError(
                "a turn has text but no length in tokens",
                where=place(self.path, row),
                remedy=_TOKENS_REMEDY,
            )
        return token_count(message[key], key, self.path, row)


def _turns(record: dict[str, Any]) -> list[Any] | None:
    turns = record.get("conversations", record.get("messages"))
    return turns if isinstance(turns, list) else None


def _first_key(record: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if record.get(key) is not None), None)
