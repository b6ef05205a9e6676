import numpy as np
import pytest

from twin.errors import InputError
from twin.request import SegmentContent
from twin.workload.segments import SegmentBuilder
from twin.workload.trace import Trace


def trace_of(*arrival_s: float) -> Trace:
    count = len(arrival_s)
    builder = SegmentBuilder()
    for i in range(count):
        builder.add_blocks(list(range(i)), 16, 16 * i)
    return Trace(
        path="t.csv",
        format="azure_llm_csv",
        finish="stop",
        arrival_s=np.array(arrival_s),
        prompt_tokens=16 * np.arange(count) + 1,
        output_tokens=np.arange(count) + 1,
        rows=np.arange(count) + 2,
        names=tuple(f"n{i}" for i in range(count)),
        segments=builder.build(),
    )


def test_window_holds_its_start_but_not_its_end() -> None:
    cut = trace_of(0, 1, 2, 3, 4).window(1, 3)
    assert cut.arrival_s.tolist() == [0, 1]
    assert cut.names == ("n1", "n2")
    assert cut.rows.tolist() == [3, 4]


def test_empty_window_says_how_long_the_trace_is() -> None:
    with pytest.raises(InputError, match=r"between 5 s and 9 s; the trace lasts from 0 to 4 s"):
        trace_of(0, 4).window(5, 9)


def test_take_keeps_rows_together() -> None:
    whole = trace_of(0, 1, 2, 3)
    some = whole.take(np.array([3, 0, 2]))
    assert some.prompt_tokens.tolist() == [49, 1, 33]
    assert some.names == ("n3", "n0", "n2")
    assert whole.segments is not None
    assert some.segments is not None
    all_contents = whole.segments.contents(whole.prompt_tokens, whole.output_tokens)
    taken = some.segments.contents(some.prompt_tokens, some.output_tokens)
    assert taken == [all_contents[i] for i in (3, 0, 2)]


def test_contents_end_with_the_answer() -> None:
    builder = SegmentBuilder()
    builder.add_blocks([9, 9], 512, 700)
    builder.add_segments([], [], builder.fresh_id())
    table = builder.build()
    assert table.contents(np.array([700, 5]), np.array([10, 6])) == [
        SegmentContent((0, 1, 2), (512, 700, 710)),
        SegmentContent((3,), (11,)),
    ]
