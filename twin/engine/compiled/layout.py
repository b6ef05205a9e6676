"""Where the state of compiled replicas lies: records in flat arrays, row 0 unused where 0 is none.

All lengths are in tokens unless a name says blocks; times in seconds.
"""

from typing import Any, NamedTuple

import numpy as np

_F, _I, _H = np.float64, np.int64, np.int32

REQUEST = np.dtype(
    [
        ("stamp_s", _F), ("scheduled_s", _F), ("first_token_s", _F), ("last_token_s", _F),
        ("finish_s", _F),
        ("prompt", _I), ("max_tokens", _I), ("limit", _I), ("priority", _I),
        ("computed", _I), ("output", _I), ("placeholders", _I), ("in_flight", _I),
        ("delivered", _I), ("place", _I), ("room", _I), ("blocks", _I), ("cached_blocks", _I),
        ("segments_at", _I), ("segments", _I), ("cached_tokens", _I), ("preemptions", _I),
        ("status", _I), ("replica", _I), ("before", _I), ("after", _I),
    ],
    align=True,
)  # fmt: skip
"""A request and its progress (`twin.request.RequestState`); its row is its index.

`place`, `room`: where its KV blocks and their keys stand in the tables, and for how many blocks.
`segments_at`, `segments`: its content (`SegmentContent`); none: it shares nothing; below 0: the
keys of its blocks stand there, one by one.
`before`, `after`: neighbours in the waiting list (or inbox), -1 at the ends.
"""

WAITING, RUNNING, PREEMPTED, FINISHED, ABSENT = 0, 1, 2, 3, 4

BLOCK = np.dtype(
    [
        ("key", _I), ("holders", _H), ("has_key", _H), ("after", _H), ("before", _H),
        ("twin", _H), ("last_twin", _H),
    ],
    align=True,
)  # fmt: skip
"""A KV block: `after`, `before` in the free order, block 0 head and tail of it; `twin`: the next
block of equal content, in order of caching; `last_twin`: valid for the first of them."""

SLOT = np.dtype([("key", _I), ("block", _I)], align=True)
"""A place in a hash table from keys to blocks; block 0: it is free."""

REPLICA = np.dtype(
    [
        ("now_s", _F), ("free_s", _F), ("launched_s", _F), ("end_s", _F),
        ("phase", _I), ("executed", _I), ("idle_iterations", _I),
        ("running", _I), ("waiting", _I), ("inbox", _I),
        ("first", _I), ("last", _I), ("inbox_first", _I), ("inbox_last", _I),
        ("free_blocks", _I), ("unsent", _I), ("flights", _I), ("oldest", _I),
        ("slot", _I), ("preempted", _I), ("skipped", _I), ("live_tokens", _I),
        ("steps", _I), ("gaps", _I),
        ("requests", _I), ("queries", _I), ("hits", _I),
        ("again_requests", _I), ("again_queries", _I), ("again_hits", _I),
    ],
    align=True,
)  # fmt: skip
"""An engine core: `now_s` is the instant of its next event, `phase` what that event is; `steps`
and `gaps` count what there was, kept or not."""

FLIGHT = np.dtype(
    [("end_s", _F), ("count", _I), ("tokens", _I), ("samples", _I), ("empty", _I)], align=True
)
"""A step scheduled and not processed yet; its requests stand in the plan of its slot."""

ENTRY = np.dtype([("row", _I), ("tokens", _I), ("epoch", _I), ("samples", _I)], align=True)
"""What a plan has of one request."""

POLICY = np.dtype(
    [
        ("max_num_seqs", _I), ("most_running", _I), ("max_num_batched_tokens", _I),
        ("max_model_len", _I),
        ("block_size", _I), ("caching", _I), ("chunked", _I), ("threshold", _I),
        ("priority", _I), ("reserve_full_isl", _I), ("watermark_blocks", _I),
        ("asynchronous", _I), ("usable_blocks", _I), ("stride", _I),
        ("schedule_s", _F), ("schedule_per_seq_s", _F), ("update_s", _F),
        ("update_per_seq_s", _F), ("wake_s", _F),
        ("extra_s", _F), ("gap_s", _F), ("gap_per_seq_s", _F), ("tail", _F),
    ],
    align=True,
)  # fmt: skip
"""`SchedulerLimits`, `HostCosts` and what `StepTimer` adds to a step, one row."""

SUM = np.dtype([("seconds", _F), ("bound", _F, 4), ("source", _F, 4), ("kernels", _I)], align=True)
"""`OpSum`."""

LINE = np.dtype(
    [("base_s", _F), ("slope_s", _F), ("bound", _I), ("source", _I), ("kernels", _I)], align=True
)
"""Decode attention over KV tokens."""

PIECE = np.dtype(
    [
        ("base_s", _F), ("slope_s", _F), ("attention_base_s", _F), ("launch_base_s", _F),
        ("launch_slope_s", _F), ("by_bound", _F, 4), ("by_source", _F, 4), ("last_kv", _I),
        ("bound", _I), ("source", _I),
    ],
    align=True,
)  # fmt: skip
"""`DecodePiece`."""

CELL = np.dtype(
    [
        ("q0", _F), ("per_q", _F), ("h0", _F), ("per_h", _F), ("base", _F), ("by_q", _F),
        ("by_h", _F), ("by_both", _F), ("bound", _I), ("source", _I), ("kernels", _I),
    ],
    align=True,
)  # fmt: skip
"""A cell of `PrefillGrid`."""

STEP = np.dtype(
    [
        ("scheduled_s", _F), ("start_s", _F), ("end_s", _F), ("replica", _H), ("prefill", _H),
        ("decode", _H), ("running", _H), ("waiting", _H), ("used_blocks", _H),
        ("preempted", _H), ("bound", _H),
    ],
    align=True,
)  # fmt: skip
"""A step taken by itself."""

RUN = np.dtype(
    [
        ("now_s", _F), ("free_s", _F), ("flying_s", _F), ("update_s", _F), ("kv_tokens", _I),
        ("seqs", _I), ("steps", _I), ("replica", _H), ("waiting", _H), ("used_blocks", _I),
        ("taken_at", _I),
    ],
    align=True,
)  # fmt: skip
"""A run of decode steps: all that its instants and block counts follow from.

`taken_at`: where the blocks that its first steps take stand; they repeat after a block size.
"""

GAP = np.dtype([("gap_s", _F), ("times", _H), ("replica", _H)], align=True)
"""A gap between tokens and how often in a row; times -1: those of the run that `gap_s` numbers."""

# Places in the counters.
STEPS, RUNS, TAKEN, GAPS, TABLE, ENDED, NEED, NEED_A, NEED_B, NEED_C, NEED_D = range(11)
COUNTERS = 11


class Prices(NamedTuple):
    """What steps take, filled in as they are met; -1 in an index: not priced yet."""

    sums: Any
    body_of: Any
    head_of: Any
    lines: Any
    line_of: Any
    pieces: Any
    piece_of: Any
    cells: Any
    cell_of: Any
    queries: Any
    histories: Any
    captured: Any
    floors: Any


class State(NamedTuple):
    """Replicas of one kind. The first axis is the replica unless said otherwise.

    `request`: by index of the request. `table_block`, `table_key`: KV blocks of each request and
    their keys. `counter`: see above. `scratch`, `bucket`, `event`: between calls of no meaning.
    """

    policy: Any
    replica: Any
    request: Any
    block: Any
    hash: Any
    running: Any
    plan: Any
    flight: Any
    by_source: Any
    table_block: Any
    table_key: Any
    segment_id: Any
    segment_end: Any
    step: Any
    run: Any
    taken: Any
    gap: Any
    ended: Any
    counter: Any
    scratch: Any
    split: Any
    bucket: Any
    event: Any
