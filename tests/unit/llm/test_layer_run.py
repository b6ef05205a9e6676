"""A run of decode steps over measured layers is what `LayerTimer.time` says step by step."""

import random

import numpy as np
import pytest

from tests.unit.llm import layer_profiles as known
from tests.unit.llm.layer_profiles import DENSE, SPARSE, layer_profile
from twin.llm.layer_profiles import layer_timer_for
from twin.llm.layer_timer import LayerTimer
from twin.llm.models import MODELS
from twin.step import BatchShape

SKEW = [
    (0, "n<=8", f"sr<={share}%", f"kvB<={longest}", "kp=0", alpha)
    for share, longest, alpha in [
        (40, "1k", 0.1), (100, "1k", 0.2), (40, "4k", 0.3), (100, "4k", 0.0)
    ]
]  # fmt: skip
NAMES = ("prefill_chunk", "sequences", "share", "longest", "history", "alpha")

TIMERS = {
    "dense": lambda: LayerTimer(layer_profile(), DENSE, 1, (8, 64, 512)),
    "sharded": lambda: LayerTimer(layer_profile(tp=2), DENSE, tp=2),
    "experts": lambda: LayerTimer(layer_profile(SPARSE, gpu="rtx_pro_6000"), SPARSE, 1, (64,)),
    "skew": lambda: LayerTimer(
        layer_profile(tables={"skew": known.columns(NAMES, SKEW)}), DENSE, 1, (64,)
    ),
    "shipped": lambda: layer_timer_for(
        "rtx_4090", MODELS["llama-3.1-8b"], "vllm", "0.19.0", (1, 8, 64, 256)
    ),
}


def after(held, steps):
    """The shape of the step in which contexts of these lengths have become so much longer."""
    seqs, held = len(held), [tokens + steps for tokens in held]
    return BatchShape((), seqs, sum(held), max(held), seqs, min(held))


@pytest.mark.parametrize("name", TIMERS)
def test_equals_the_steps(name):
    timer, rng = TIMERS[name](), random.Random(5)
    for _ in range(25):
        seqs, steps = rng.choice((1, 2, 7, 64, 300)), rng.choice((1, 5, 60, 400))
        low = rng.randint(1, 3000)
        held = [rng.randint(low, low * rng.choice((1, 1, 4))) for _ in range(seqs)]
        run = timer.decode_run(after(held, 1), steps)
        plain = [timer.time(after(held, 1 + step)) for step in range(steps)]
        assert run.seconds.tolist() == [time.seconds for time in plain]
        kept = rng.randint(1, steps)
        bounds = np.broadcast_to(run.bound(kept), kept).tolist()
        assert bounds == [time.bound for time in plain[:kept]]
        sums = [sum(time.by_source[i] for time in plain[:kept]) for i in range(4)]
        assert run.by_source(kept) == pytest.approx(sums, rel=1e-9)


def test_uneven_lengths_matter_in_a_run():
    even = LayerTimer(layer_profile(), DENSE, 1, (64,))
    held = after([500] * 7 + [900], 1)
    assert (TIMERS["skew"]().decode_run(held, 9).seconds > even.decode_run(held, 9).seconds).all()
