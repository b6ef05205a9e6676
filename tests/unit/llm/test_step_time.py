import random

import pytest

from hwmodels.gpus import GPUS
from hwmodels.ops import Bound, Source
from hwmodels.roofline import RooflineCostModel
from twin.errors import InputError
from twin.llm.arch import ModelArch, MoeArch
from twin.llm.cuda_graphs import capture_sizes
from twin.llm.lowering import Precision, attention_ops, dense_ops
from twin.llm.models import find_model
from twin.llm.op_sum import BOUNDS, SOURCES
from twin.llm.step_time import EAGER_OPS_PER_LAYER, NO_FULL_GRAPH_LAYER_S, StepTimer
from twin.step import BatchShape

LLAMA_8B = ModelArch("llama-3.1-8b", 32, 4096, 32, 8, 128, 14336, 128256, 131072)
GPT_OSS = ModelArch(
    "gpt-oss-20b", 24, 2880, 64, 8, 64, 2880, 201088, 131072, sliding_window=128,
    num_sliding_layers=12, moe=MoeArch(32, 4, 2880, 24),
)  # fmt: skip
BF16 = Precision()
SIZES = capture_sizes(256, 8192)


class Counting:
    """A cost model that counts what it is asked."""

    def __init__(self, inner):
        self.inner, self.calls = inner, 0

    def cost(self, op):
        self.calls += 1
        return self.inner.cost(op)

    def launch_floor_s(self, kernels, *, graph):
        return self.inner.launch_floor_s(kernels, graph=graph)


def timer(gpu="h100_sxm", arch=LLAMA_8B, precision=BF16, tp=1, **more):
    more.setdefault("capture_sizes", SIZES)
    return StepTimer(RooflineCostModel(GPUS[gpu]), arch, precision, tp, **more)


def decode(seqs, context):
    return BatchShape((), seqs, seqs * context, context, seqs)


def plain_seconds(gpu, arch, precision, tp, shape, tokens):
    """The sum over all operations, without caches or lines."""
    cost_model = RooflineCostModel(GPUS[gpu])
    ops = dense_ops(arch, precision, tp, tokens, shape.sampled_seqs)
    ops += attention_ops(arch, precision, tp, shape)
    return sum(cost_model.cost(op).seconds for op in ops)


@pytest.mark.parametrize("arch", [LLAMA_8B, GPT_OSS], ids=lambda a: a.name)
@pytest.mark.parametrize("kv_dtype", ["bf16", "fp8"])
@pytest.mark.parametrize(("seqs", "padded"), [(1, 1), (9, 16), (64, 64), (250, 256)])
@pytest.mark.parametrize("context", [1, 20, 100, 1000, 5000, 32768])
def test_decode_lines_stay_within_one_per_cent(arch, kv_dtype, seqs, padded, context):
    precision, shape = Precision(kv_dtype=kv_dtype), decode(seqs, context)
    expected = plain_seconds("h100_sxm", arch, precision, 1, shape, padded)
    assert timer(arch=arch, precision=precision).time(shape).seconds == pytest.approx(
        expected, rel=0.01
    )


def test_mixed_step_sums_chunks_decodes_and_the_missing_graph():
    shape = BatchShape(((512, 2048), (300, 300)), 64, 64 * 1024, 1024, 66)
    expected = plain_seconds("h100_sxm", LLAMA_8B, BF16, 1, shape, 876)
    found = timer().time(shape)
    assert found.seconds == pytest.approx(expected + 32 * NO_FULL_GRAPH_LAYER_S, rel=2e-3)
    assert BOUNDS[found.bound] is Bound.COMPUTE


@pytest.mark.parametrize("gpu", ["h100_sxm", "a100_sxm"])
def test_long_chunks_lie_between_knots_within_one_per_cent(gpu):
    rng, timing = random.Random(7), timer(gpu)
    for _ in range(60):
        query, history = rng.randint(513, 8192), rng.choice((0, rng.randint(1, 20_000)))
        shape = BatchShape(((query, query + history),), 0, 0, 0, 1)
        expected = plain_seconds(gpu, LLAMA_8B, BF16, 1, shape, query)
        found = timing.time(shape).seconds - 32 * NO_FULL_GRAPH_LAYER_S
        assert found == pytest.approx(expected, rel=0.01)


def test_a_jump_after_a_tile_is_kept():
    timing = timer()
    steps = [
        timing.time(BatchShape(((tokens, tokens),), 0, 0, 0, 1)).seconds
        for tokens in (1023, 1024, 1025, 1026)
    ]
    assert steps[2] - steps[1] > 5 * abs(steps[1] - steps[0])
    assert steps[2] - steps[1] > 5 * abs(steps[3] - steps[2])


def test_small_mixed_steps_pad_to_their_piecewise_graph():
    shape = BatchShape(((50, 50),), 0, 0, 0, 1)
    expected = plain_seconds("h100_sxm", LLAMA_8B, BF16, 1, shape, 56)
    assert timer().time(shape).seconds == pytest.approx(expected + 32 * NO_FULL_GRAPH_LAYER_S)


@pytest.mark.parametrize("gpu", ["h100_sxm", "l40s"])
@pytest.mark.parametrize(
    "shape",
    [decode(1, 1), decode(64, 1000), decode(700, 100), BatchShape(((9, 9),), 3, 30, 10, 4),
     BatchShape((), 0, 0, 0, 0)],
)  # fmt: skip
@pytest.mark.parametrize("eager", [False, True])
def test_shares_add_up(gpu, shape, eager):
    found = timer(gpu, eager=eager).time(shape)
    assert sum(found.by_bound) == pytest.approx(found.seconds)
    assert sum(found.by_source) == pytest.approx(found.seconds)
    assert found.by_bound[found.bound] == max(found.by_bound) or BOUNDS[found.bound] is Bound.LAUNCH


def test_sources_tell_measured_from_borrowed():
    physics, extrapolated = SOURCES.index(Source.PHYSICS), SOURCES.index(Source.EXTRAPOLATED)
    assert timer().time(decode(8, 100)).by_source[extrapolated] == 0.0
    borrowed = timer("rtx_4090").time(decode(8, 100)).by_source
    assert borrowed[extrapolated] > 5 * borrowed[physics]


def test_eager_decode_lasts_as_long_as_its_launches():
    graph, eager = timer("a100_sxm"), timer("a100_sxm", eager=True)
    launches_s = 32 * EAGER_OPS_PER_LAYER * 44e-6
    gpu_s = graph.time(decode(1, 100)).seconds
    found = eager.time(decode(1, 100))
    # The last layer's work follows its launch, and the launch of its kernels is not a graph's.
    last_s = gpu_s / 32 + NO_FULL_GRAPH_LAYER_S
    assert found.seconds == pytest.approx(launches_s + last_s, rel=1e-3)
    assert BOUNDS[found.bound] is Bound.LAUNCH
    assert gpu_s < 0.6 * launches_s


def test_eager_is_slower_than_graphs():
    for gpu in ("a100_sxm", "h100_sxm"):
        for seqs in (1, 16, 64):
            shape = decode(seqs, 500)
            assert timer(gpu, eager=True).time(shape).seconds > timer(gpu).time(shape).seconds


@pytest.mark.parametrize("shape", [BatchShape(((4096, 4096),), 0, 0, 0, 1), decode(700, 3000)])
def test_long_eager_steps_leave_the_graph_as_those_with_prefill_do(shape):
    """The GPU outlasts the launches here; what is left is the layers' extra, once."""
    found = timer(eager=True).time(shape).seconds
    bare = timer(capture_sizes=(), no_full_graph_s=0.0).time(shape).seconds
    assert found > 32 * EAGER_OPS_PER_LAYER * 20e-6
    assert found == pytest.approx(bare + 32 * NO_FULL_GRAPH_LAYER_S, rel=1e-9)


def test_an_eager_step_counts_the_rows_of_its_graph():
    """Else a batch just above a captured size would be cheaper without graphs."""
    graph, eager = (timer("l40s", no_full_graph_s=0.0, eager=e) for e in (False, True))
    for seqs in (257, 264, 272):
        assert eager.time(decode(seqs, 3000)).seconds >= graph.time(decode(seqs, 3000)).seconds


@pytest.mark.parametrize("gpu", ["a100_sxm", "h100_sxm", "h200_sxm"])
@pytest.mark.parametrize("name", ["llama-3.2-1b", "qwen3-0.6b"])
def test_small_networks_without_graphs_against_published_ratios(gpu, name):
    """One sequence of a small network decodes at least 4 times slower without graphs.

    Published: 4 times and more for small networks, 133.3 against 25.3 tokens a second (5.3), and
    7.5 times on another platform; none of them names GPU and network, so the least is held.
    """
    arch = find_model(name)
    graph, eager = (timer(gpu, arch, eager=e).time(decode(1, 500)).seconds for e in (False, True))
    assert eager / graph >= 4.0


def test_above_the_largest_graph_steps_launch_one_by_one():
    shape = decode(513, 100)
    expected = plain_seconds("h100_sxm", LLAMA_8B, BF16, 1, shape, 513)
    found = timer().time(shape).seconds
    assert found == pytest.approx(expected + 32 * NO_FULL_GRAPH_LAYER_S, rel=0.01)
    assert timer().time(decode(512, 100)).seconds < found


def test_padding_shows_in_the_step():
    timing = timer("a100_sxm")
    assert timing.time(decode(9, 500)).seconds == pytest.approx(
        plain_seconds("a100_sxm", LLAMA_8B, BF16, 1, decode(9, 500), 16), rel=0.01
    )


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("gpu", ["h100_sxm", "a100_sxm"])
def test_decode_form_repeats_time_exactly_up_to_its_limit(gpu, eager):
    timing, rng = timer(gpu, eager=eager), random.Random(5)
    launched = 0
    for _ in range(200):
        seqs = rng.choice((1, 3, 17, 64, 256, 600))
        kv = int(seqs * 2 ** rng.uniform(0, 15))
        base_s, slope_s, last_kv = timing.decode_form(seqs, kv)
        assert last_kv >= kv
        for tokens in {kv, last_kv, rng.randint(kv, last_kv)}:
            shape = BatchShape((), seqs, tokens, tokens, seqs)
            found = timing.time(shape)
            assert found.seconds == base_s + slope_s * tokens
            launched += BOUNDS[found.bound] is Bound.LAUNCH
    assert bool(launched) == eager, "only launching kernel by kernel outlasts the GPU here"


def test_decode_form_ends_where_the_next_line_begins():
    timing = timer()
    _, slope_s, last_kv = timing.decode_form(64, 64 * 1000)
    assert last_kv < 64 * 1300
    assert timing.decode_form(64, last_kv + 1)[1] != slope_s


def test_decode_time_grows_with_kv():
    timing = timer()
    times = [timing.time(BatchShape((), 32, kv, kv, 32)).seconds for kv in range(32, 90_000, 331)]
    assert times == sorted(times)


def test_repeated_steps_ask_nothing():
    cost_model = Counting(RooflineCostModel(GPUS["h100_sxm"]))
    timing = StepTimer(cost_model, LLAMA_8B, BF16, 1, capture_sizes=SIZES)
    timing.time(decode(60, 1000))
    first = cost_model.calls
    assert first > 5
    for context in range(1001, 1020):
        timing.time(decode(60, context))
    assert cost_model.calls == first
    timing.time(decode(61, 1000))  # same graph, so only attention and head are new
    assert cost_model.calls <= first + 5


def test_ranks_that_cannot_share_are_an_input_error():
    with pytest.raises(InputError, match="does not divide"):
        timer(tp=5)


def test_llama_8b_on_h100_against_a_published_run():
    """Inter-token latency at batch 1, L tokens of context: 6.44 ms + 4.37e-5 ms x L (bf16 KV)."""
    timing = timer()
    short, long = (timing.time(decode(1, length)).seconds * 1e3 for length in (1, 65536))
    assert short == pytest.approx(6.44, rel=0.05)
    assert (long - short) / 65535 == pytest.approx(4.37e-5, rel=0.05)
