"""A run of five requests whose every figure can be worked out on paper."""

import numpy as np

from twin.engine.result import PrefixTotals, RequestTable, SimulationResult, StepTable

NAN = np.nan


def hand_result(**inputs: object) -> SimulationResult:
    """Two replicas; three requests finish, one is rejected, one is cut without a token.

    ===  =======  =========  ===========  ======  ======  ======  =======
    row  arrival  scheduled  first token  finish  prompt  output  outcome
    ===  =======  =========  ===========  ======  ======  ======  =======
    0    0.0      0.1        0.5          1.5     100     11      finished
    1    1.0      1.0        1.2          1.2     50      1       finished
    2    2.0      2.5        3.0          4.0     30      5       finished
    3    2.5      –          –            –       999     0       rejected
    4    5.0      –          –            –       20      0       unfinished
    ===  =======  =========  ===========  ======  ======  ======  =======
    """

    def whole(*values: int) -> np.ndarray:
        return np.array(values, dtype=np.int64)

    requests = RequestTable(
        arrival_s=np.array([0.0, 1.0, 2.0, 2.5, 5.0]),
        scheduled_s=np.array([0.1, 1.0, 2.5, NAN, NAN]),
        first_token_s=np.array([0.5, 1.2, 3.0, NAN, NAN]),
        finish_s=np.array([1.5, 1.2, 4.0, NAN, NAN]),
        prompt_tokens=whole(100, 50, 30, 999, 20),
        output_tokens=whole(11, 1, 5, 0, 0),
        cached_tokens=whole(0, 16, 0, 0, -1),
        preemptions=whole(0, 0, 2, 0, 0),
        replica=whole(0, 1, 0, -1, 1),
        outcome=whole(0, 0, 0, 1, 2),
        session=whole(-1, -1, -1, -1, -1),
        turn=whole(0, 0, 0, 0, 0),
        priority=whole(0, 0, 0, 0, 0),
        name=("a", "b", "c", "d", "e"),
    )
    steps = StepTable(
        replica=whole(0, 1, 0, 0),
        start_s=np.array([0.1, 1.0, 2.6, 3.0]),
        end_s=np.array([0.9, 1.2, 2.9, 4.0]),
        scheduled_s=np.array([0.1, 1.0, 2.5, 3.0]),
        prefill_tokens=whole(100, 34, 30, 0),
        decode_tokens=whole(0, 0, 0, 1),
        running=whole(1, 1, 1, 2),
        waiting=whole(0, 0, 3, 0),
        used_blocks=whole(10, 4, 2, 5),
        preempted=whole(0, 0, 2, 0),
        bound=whole(0, 3, 0, 1),
    )
    return SimulationResult(
        requests=requests,
        steps=steps,
        itl_s=np.array([0.1] * 10 + [0.25] * 4),
        prefix=PrefixTotals(queries=200, hits=50, preempted_queries=7, preempted_hits=3),
        kv_blocks=21,
        block_size=16,
        replicas=2,
        simulated_s=6.0,
        inputs=dict(inputs),
    )
