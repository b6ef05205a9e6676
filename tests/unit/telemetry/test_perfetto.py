import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.report.by_hand import hand_result
from tests.unit.report.synthetic import empty_result, toy_result
from twin.telemetry.perfetto import trace_events, trace_json, write_trace


def test_a_step_is_a_slice_on_its_replicas_track_in_microseconds():
    events, note = trace_events(hand_result())
    assert note == ""
    slices = [event for event in events if event["ph"] == "X"]
    assert [event["pid"] for event in slices] == [1, 2, 1, 1]
    assert slices[2]["ts"] == pytest.approx(2.6e6)
    assert slices[2]["dur"] == pytest.approx(0.3e6)
    assert slices[2]["args"] == {
        "step": 2, "prefill_tokens": 30, "decode_tokens": 0, "running": 1, "waiting": 3,
        "bound": "compute",
    }  # fmt: skip
    assert [event["name"] for event in slices] == ["prefill", "prefill", "prefill", "decode"]


def test_counters_and_preemptions():
    events, _ = trace_events(hand_result())
    usage = [e["args"]["used"] for e in events if e["ph"] == "C" and e["name"] == "KV cache (%)"]
    assert usage == [50.0, 20.0, 10.0, 25.0]
    queue = [e["args"] for e in events if e["ph"] == "C" and e["name"] == "requests"]
    assert queue[2] == {"running": 1, "waiting": 3}
    lost = [e for e in events if e["ph"] == "i"]
    assert [e["args"]["requests"] for e in lost] == [2]


def test_the_cap_is_kept_and_said():
    result = toy_result()
    events, note = trace_events(result, max_events=100)
    assert len(events) <= 100 < 3 * len(result.steps)
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) >= 29
    assert note.startswith(f"{len(slices)} of {len(result.steps)} steps")
    assert "limited to 100 events" in note
    labels = [e["args"]["labels"] for e in events if e["name"] == "process_labels"]
    assert labels == [note]
    assert json.loads(trace_json(result, max_events=100))["otherData"]["note"] == note


def test_a_limit_that_just_fits_leaves_nothing_out():
    result = hand_result()
    whole = len(trace_events(result)[0])
    # Three head events a replica are set aside, the label among them when there is none.
    assert trace_events(result, max_events=3 * 4 + 1 + 6)[1] == ""
    assert trace_events(result, max_events=3 * 4 + 1 + 5)[1] != ""
    assert whole == 3 * 4 + 1 + 4


def test_from_s_starts_later_and_says_so():
    events, note = trace_events(hand_result(), from_s=2.0)
    assert [e["args"]["step"] for e in events if e["ph"] == "X"] == [2, 3]
    assert note.startswith("2 of 4 steps, from 2 s until 4 s")


def test_gzip_and_plain_hold_the_same_and_equal_runs_equal_bytes(tmp_path):
    result = toy_result()
    write_trace(result, tmp_path / "a.json")
    write_trace(result, tmp_path / "a.json.gz")
    write_trace(result, tmp_path / "b.json.gz")
    packed = (tmp_path / "a.json.gz").read_bytes()
    assert gzip.decompress(packed) == (tmp_path / "a.json").read_bytes()
    assert packed == (tmp_path / "b.json.gz").read_bytes()
    json.loads((tmp_path / "a.json").read_text())


def test_an_empty_run_is_a_valid_trace():
    data = json.loads(trace_json(empty_result()))
    assert {event["ph"] for event in data["traceEvents"]} == {"M"}


def test_steps_that_overlap_lie_on_several_tracks():
    result = hand_result()
    steps = replace(result.steps, end_s=np.array([2.7, 1.2, 3.5, 4.0]))
    events, _ = trace_events(replace(result, steps=steps))
    names = [
        (event["pid"], event["tid"], event["args"]["name"])
        for event in events
        if event["name"] == "thread_name"
    ]
    assert names == [
        (1, 1, "GPU steps, in flight 1"),
        (1, 2, "GPU steps, in flight 2"),
        (2, 1, "GPU steps"),
    ]
    slices = [event for event in events if event["ph"] == "X"]
    assert [(event["pid"], event["tid"]) for event in slices] == [(1, 1), (2, 1), (1, 2), (1, 1)]
    for most in (len(events) - 3, len(events), len(events) + 2):
        kept, note = trace_events(replace(result, steps=steps), max_events=most)
        assert len(kept) <= most
        assert bool(note) == (most <= len(events))
