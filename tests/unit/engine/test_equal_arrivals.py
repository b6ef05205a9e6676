"""Requests that arrive at one instant, as every closed loop's first ones do."""

from tests.unit.engine import support
from twin.engine.result import FINISHED
from twin.request import Request


def test_chunked_prompts_of_one_instant_do_not_evict_each_other_for_ever():
    # Found by random cases: with equal time stamps these preempt each other without end, since of
    # equal victims the first in `running` goes.
    requests = [
        Request(index=i, arrival_s=0.0, prompt_tokens=prompt, max_tokens=output)
        for i, (prompt, output) in enumerate([(89, 10), (145, 6), (103, 19), (82, 5)])
    ]
    engine, _, _ = support.run(
        support.ListSource(requests),
        horizon_s=3000.0,
        max_model_len=192,
        block_size=1,
        num_gpu_blocks=202,
        max_num_seqs=8,
        max_num_batched_tokens=33,
        scheduling_policy="priority",
        scheduler_reserve_full_isl=False,
        long_prefill_token_threshold=7,
        enable_prefix_caching=False,
    )
    table = engine.requests.table()
    assert (table.outcome == FINISHED).all()
    assert table.preemptions.any()
