import math
from dataclasses import replace

import numpy as np
import pytest

from hwmodels.collectives import collective_cost
from hwmodels.gpus import GPUS
from hwmodels.ops import Bound, Collective
from tests.unit.llm import layer_profiles as known
from tests.unit.llm.layer_profiles import DENSE, SPARSE, attention_s, layer_profile
from twin.errors import InputError
from twin.llm.layer_attention import AttentionGrid, AttentionRoofline, fill
from twin.llm.layer_group import UNEVEN_SHARE, LayerGroupTimer
from twin.llm.layer_parts import attention_grid, cold_floors, expert_table
from twin.llm.layer_profiles import applies, layer_profile_for, layer_timer_for
from twin.llm.layer_skew import SkewFit
from twin.llm.layer_tables import Line
from twin.llm.layer_timer import LayerTimer
from twin.llm.lowering import Precision
from twin.llm.models import MODELS
from twin.llm.op_sum import BOUNDS
from twin.step import BatchShape


def decode(seqs, kv, *, low=None, high=None):
    low, high = low or kv, high or kv
    return BatchShape((), seqs, seqs * kv, high, seqs, low)


def grid(arch=DENSE, **changes):
    profile = layer_profile(arch, **changes)
    return attention_grid(profile, arch, GPUS[profile.gpu], 1)


# attention


@pytest.mark.parametrize("row", known.attention_rows())
def test_attention_repeats_every_measured_point(row):
    assert grid().seconds(*row) == pytest.approx(attention_s(*row), rel=1e-12)


@pytest.mark.parametrize(
    "row",
    [(0, 0, 20, 500), (0, 0, 3, 3000), (60, 0, 0, 0), (400, 600, 0, 0), (300, 300, 20, 700)],
)
def test_attention_between_points_follows_the_work(row):
    assert grid().seconds(*row) == pytest.approx(attention_s(*row), rel=0.12)


def test_attention_beyond_the_grid_goes_on_with_the_roofline():
    surface = grid()
    twice = surface.seconds(0, 0, 64, 16384) / surface.seconds(0, 0, 64, 8192)
    assert twice == pytest.approx(2.0, rel=0.02)
    quadratic = surface.seconds(8192, 0, 0, 0) / surface.seconds(4096, 0, 0, 0)
    assert 2.5 < quadratic < 4.0


def test_no_work_takes_no_time():
    assert grid().seconds(0, 0, 0, 0) == 0.0


def test_a_missing_point_is_filled_from_its_neighbours():
    rows = np.array([r for r in known.attention_rows() if r != (0, 0, 8, 1024)])
    seconds = np.array([attention_s(*row) for row in rows.tolist()])
    roofline = AttentionRoofline(4096.0, 16384.0, 1e12, 1e14)
    surface = AttentionGrid(rows, seconds, roofline)
    assert surface.seconds(0, 0, 8, 1024) == pytest.approx(attention_s(0, 0, 8, 1024), rel=0.1)


def test_fill_interpolates_inside_and_freezes_outside():
    axes = [np.array([0.0]), np.array([0.0, 1.0, 2.0, 3.0])]
    filled = fill(np.array([[np.nan, 1.0, np.nan, 3.0]]), axes)
    assert filled.tolist() == [[1.0, 1.0, 2.0, 3.0]]


# uneven decodes

LABELS = ("n<=8", "sr<=40%", "kvB<=4k", "kp=0")


@pytest.mark.parametrize(
    ("chunk", "history", "lengths", "alpha"),
    [
        (0, 0, (8, 1000.0, 500, 4000), 0.1),
        (0, 0, (8, 1000.0, 1000, 1000), 0.0),  # even
        (0, 0, (8, 3900.0, 500, 4000), 0.1),  # beyond the last bucket: the last
        (900, 0, (8, 1000.0, 500, 4000), 0.3),  # nearest measured chunk
    ],
)
def test_alpha_is_that_of_the_bucket(chunk, history, lengths, alpha):
    fit = SkewFit([(0, LABELS, 0.1), (1024, LABELS, 0.3)])
    assert fit.alpha(chunk, history, lengths) == alpha


def test_a_bucket_without_rows_has_the_default():
    other = ("n<=64", "sr<=40%", "kvB<=4k", "kp=0")
    fit = SkewFit([(0, LABELS, 0.1), (1024, other, 0.2)], default=0.07)
    assert fit.alpha(0, 0, (60, 1000.0, 500, 4000)) == 0.07


def test_an_unknown_bucket_label_is_refused():
    with pytest.raises(ValueError, match="bucket label"):
        SkewFit([(0, ("many", *LABELS[1:]), 0.1)])


def test_uneven_lengths_move_towards_all_at_the_longest():
    rows = [(0, *LABELS, 0.25)]
    names = ("prefill_chunk", "sequences", "share", "longest", "history", "alpha")
    profile = layer_profile(tables={"skew": known.columns(names, rows)})
    timer = LayerTimer(profile, DENSE)
    uneven = timer.time(decode(8, 1000, low=500, high=4000)).seconds
    even = timer.time(decode(8, 1000)).seconds
    longest = timer.time(decode(8, 4000)).seconds
    assert uneven == pytest.approx(even + 0.25 * (longest - even), rel=1e-9)


# steps of one rank


def test_a_decode_step_is_its_layers_ends_and_head():
    timer = LayerTimer(layer_profile(), DENSE)
    scale = 1 + 512 / 1000
    # Every product of this profile is above its cold floor, so the table holds as it is.
    body = scale * (2 * 2 + 60 + 2 + 40 + 250 + 3 + 130) * 1e-6
    once = scale * 5e-6
    head = 1125e-6 * (1 + 256 / 500)
    shape = BatchShape((), 512, 512 * 128, 128, 256, 128)
    expected = 3 * (body + grid().seconds(0, 0, 512, 128)) + once + head
    assert timer.time(shape).seconds == pytest.approx(expected, rel=1e-9)


def test_a_batch_is_padded_to_the_captured_size():
    padded, exact = (LayerTimer(layer_profile(), DENSE, 1, sizes) for sizes in ((512,), ()))
    assert padded.time(decode(300, 128)).seconds > exact.time(decode(300, 128)).seconds
    assert padded.time(decode(600, 128)).seconds == exact.time(decode(600, 128)).seconds


def test_prefill_costs_the_gaps_of_a_stream():
    shape = BatchShape(((128, 128),), 0, 0, 0, 1)
    waited_s = LayerTimer(layer_profile(), DENSE).time(shape).by_bound[BOUNDS.index(Bound.LAUNCH)]
    assert waited_s == pytest.approx(3 * 11 * (2.7e-6 - 1.4e-6), rel=0.3)


def test_a_second_chunk_adds_its_work():
    timer = LayerTimer(layer_profile(), DENSE, 1, (512,))
    one = timer.time(BatchShape(((128, 128),), 0, 0, 0, 1)).seconds
    two = timer.time(BatchShape(((128, 128), (128, 1152)), 0, 0, 0, 1)).seconds
    assert two > one


def test_splits_add_up_and_an_empty_batch_is_free():
    timer = LayerTimer(layer_profile(), DENSE)
    for shape in (decode(8, 100), BatchShape(((512, 600),), 4, 400, 100, 5, 100)):
        time = timer.time(shape)
        assert math.fsum(time.by_bound) == pytest.approx(time.seconds)
        assert math.fsum(time.by_source) == pytest.approx(time.seconds)
    assert timer.time(BatchShape((), 0, 0, 0, 0)).seconds == 0.0


def test_tensor_parallel_ranks_reduce_after_attention_and_mlp():
    one = LayerTimer(layer_profile(), DENSE)
    two = LayerTimer(layer_profile(tp=2), DENSE, tp=2)
    gpu, shape = GPUS["rtx_4090"], decode(64, 128)
    reduce = collective_cost(Collective("all_reduce", 64 * 4096 * 2.0, 2, repeat=7), gpu).seconds
    gather = collective_cost(Collective("all_gather", 64 * 128256 * 2.0, 2), gpu).seconds
    link = two.time(shape).by_bound[2]
    assert link == pytest.approx(reduce + gather, rel=1e-9)
    assert one.time(shape).by_bound[2] == 0.0


@pytest.mark.parametrize("changes", [{"tp": 2}, {"llm": "other"}])
def test_a_profile_of_something_else_is_refused(changes):
    profile = layer_profile()
    profile = replace(profile, facts={**profile.facts, **changes})
    with pytest.raises(InputError, match="holds"):
        LayerTimer(profile, DENSE)


def test_a_profile_without_its_experts_is_refused():
    profile = layer_profile(SPARSE, gpu="rtx_pro_6000")
    tables = {name: table for name, table in profile.tables.items() if name != "moe"}
    with pytest.raises(InputError, match="no experts"):
        LayerTimer(replace(profile, tables=tables), SPARSE)


# weights that a benchmark finds in the L2


def test_products_that_fit_the_l2_do_not_outrun_the_output_head():
    profile = layer_profile(SPARSE, gpu="rtx_pro_6000")
    floors = cold_floors(profile, SPARSE, GPUS["rtx_pro_6000"], 1)
    head_rate = 151936 * 2048 * 2 / profile.tables["per_sequence"]["seconds"][0]
    assert floors["o_proj"] == pytest.approx(32 * 128 * 2048 * 2 / head_rate)
    # 72 MiB of L2 do not hold the large products of an 8B network.
    assert set(cold_floors(layer_profile(), DENSE, GPUS["rtx_4090"], 1)) == {"qkv_proj", "o_proj"}


def test_experts_that_fit_the_l2_are_priced_as_the_others():
    profile = layer_profile(SPARSE, gpu="rtx_pro_6000")
    warm = profile.tables["moe"]["activated_experts"] == 8
    profile.tables["moe"]["seconds"][warm] /= 3
    table = expert_table(profile, SPARSE, GPUS["rtx_pro_6000"])
    assert table(64, 8) == pytest.approx(1e-6 * (30 + 6 * 8 + 6.4), rel=1e-9)
    assert table(64, 64) == pytest.approx(1e-6 * (30 + 6 * 64 + 6.4), rel=1e-9)


def test_a_line_freezes_below_and_grows_above():
    line = Line(np.array([10, 20]), np.array([1.0, 3.0]))
    assert [line(1), line(15), line(40)] == [1.0, 2.0, 6.0]


# ranks that share experts


def group(sizes=(8, 64, 256)):
    timer = LayerTimer(layer_profile(SPARSE, gpu="rtx_pro_6000"), SPARSE, 1, sizes)
    return LayerGroupTimer(timer, 2), timer


def test_the_slowest_rank_decides_for_all():
    both, _ = group()
    small, large = both.times([decode(8, 100), decode(64, 1000)])
    (even, _) = both.times([decode(64, 1000), decode(64, 1000)])
    assert large.seconds == pytest.approx(even.seconds)
    # The ranks differ by their own output head alone.
    assert large.seconds - small.seconds == pytest.approx(1125e-6 * (64 - 8) / 500, rel=1e-6)


def test_a_dummy_pass_runs_the_layers_but_no_head():
    both, timer = group()
    busy, idle = both.times([decode(8, 100), None])
    head = (
        timer.time(decode(8, 100)).seconds
        - timer.time(replace(decode(8, 100), sampled_seqs=0)).seconds
    )
    assert busy.seconds - idle.seconds == pytest.approx(head)


def test_one_rank_without_a_graph_keeps_all_from_padding():
    both, _ = group(sizes=(64,))
    assert both._rows([5, 60]) == [64, 64]
    assert both._rows([5, 65]) == [64, 65]


def test_an_uneven_exchange_costs_part_of_the_busiest_link():
    both, _ = group(sizes=())
    even, uneven = (
        both.times([BatchShape(((a, a),), 0, 0, 0, 0), BatchShape(((b, b),), 0, 0, 0, 0)])[0]
        for a, b in ((500, 500), (900, 100))
    )
    rows = 1000 + UNEVEN_SHARE * (1800 - 1000)
    gpu = GPUS["rtx_pro_6000"]
    expected = sum(
        collective_cost(Collective(kind, rows * size, 2, repeat=2), gpu).seconds
        for kind, size in (("all_gather", 4096 + 64), ("reduce_scatter", 4096))
    )
    assert uneven.by_bound[2] == pytest.approx(expected)
    assert even.by_bound[2] < expected


# which profile speaks


def test_the_shipped_profiles_are_found_by_network_and_gpu():
    llama = MODELS["llama-3.1-8b"]
    assert layer_timer_for("rtx_4090", llama, "vllm", "0.33.0") is not None
    assert layer_timer_for("rtx_4090", MODELS["qwen3-8b"], "vllm", "0.19.0") is None
    assert layer_timer_for("h100_sxm", llama, "vllm", "0.19.0") is None
    assert layer_profile_for("rtx_4090", llama, "vllm", "0.19.0", tp=2) is None


def test_a_profile_speaks_of_its_dtypes_alone():
    profile = layer_profile()
    assert applies(profile, Precision(), eager=False)
    assert not applies(profile, Precision(), eager=True)
    assert not applies(profile, Precision(kv_dtype="fp8"), eager=False)
