"""Whatever a file holds: a sound trace or an `InputError`, never anything else."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twin.errors import InputError
from twin.workload.readers import READERS, read_trace

QUICK = settings(max_examples=60, deadline=None)
LINES = [
    "TIMESTAMP,ContextTokens,GeneratedTokens",
    "2023-11-16 18:15:46.6805900,374,44",
    "2023-11-16 18:15:50,396,109",
    '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}',
    '{"timestamp": 9, "input_length": 5, "output_length": 5, "hash_ids": [2]}',
    '{"arrival_s": 0, "prompt_tokens": 40, "output_tokens": 5, "block_tokens": 16, '
    '"prompt_block_ids": [1, 2]}',
    '[{"prompt_len": 3, "output_len": 4}]',
    '[{"conversations": [{"from": "human", "tokens": 3}, {"from": "gpt", "tokens": 3}]}]',
    '{"input_lens": [1, 2], "output_lens": [3, 4], "errors": ["", "x"], "start_times": [1, 0]}',
]
KEYS = sorted(
    {key for line in LINES if line.startswith("{") for key in json.loads(line)}
    | {"prompt_len", "output_len", "conversations", "from", "role", "tokens", "id", "tenant"}
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["gpt", "3", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6)
    ),
    max_leaves=12,
)


def check(content: bytes) -> None:
    refusals: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes(content)
        for name in (None, *READERS):
            try:
                trace = read_trace(path, name)
            except InputError as error:
                refusals.append(str(error))
                continue
            assert len(trace) >= 1
            assert np.isfinite(trace.arrival_s).all()
            assert (np.diff(trace.arrival_s) >= 0).all()
            assert trace.arrival_s[0] == 0
            assert trace.prompt_tokens.min() >= 1
            assert trace.output_tokens.min() >= 1
            if trace.segments is not None:
                contents = trace.segments.contents(trace.prompt_tokens, trace.output_tokens)
                for content_of, prompt in zip(contents, trace.prompt_tokens.tolist(), strict=True):
                    assert list(content_of.ends) == sorted(set(content_of.ends))
                    assert content_of.ends[-1] > prompt
    assert not any("\n" in refusal for refusal in refusals)


@QUICK
@given(st.binary(max_size=300))
def test_any_bytes(content: bytes) -> None:
    check(content)


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes_that_claim_to_be_gzip(content: bytes) -> None:
    check(b"\x1f\x8b\x08" + content)


@QUICK
@given(
    lines=st.lists(st.sampled_from(LINES), min_size=1, max_size=5),
    edits=st.lists(st.tuples(st.integers(0, 10**4), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 10**4),
)
def test_real_lines_mixed_damaged_and_cut(
    lines: list[str], edits: list[tuple[int, int]], cut: int
) -> None:
    content = bytearray("\n".join(lines).encode())
    for position, byte in edits:
        content[position % len(content)] = byte
    check(bytes(content[: cut % (2 * len(content)) + 1]))


@QUICK
@given(
    values=st.lists(
        st.dictionaries(st.sampled_from(KEYS), json_values, max_size=8), min_size=1, max_size=3
    )
)
def test_any_json_of_known_keys(values: list[dict[str, Any]]) -> None:
    check(json.dumps(values).encode())
    check("\n".join(map(json.dumps, values)).encode())


@pytest.mark.parametrize("line", LINES)
def test_the_lines_are_worth_damaging(line: str, tmp_path: Path) -> None:
    """Each of the lines above is sound, so that damage is what the tests try."""
    path = tmp_path / "trace"
    path.write_text(line if line[0] in "[{" else "\n".join(LINES[:3]))
    assert len(read_trace(path)) >= 1
