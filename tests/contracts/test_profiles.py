"""Every kernel profile that is shipped: whole, sourced, accurate enough, and able to price."""

import re

import numpy as np
import pytest

from calibrate.holdout import FAMILIES, family_error
from hwmodels.cost import cost_model_for
from hwmodels.gpus import GPUS
from hwmodels.measured import MeasuredCostModel
from hwmodels.measured.held_out import SEED
from hwmodels.measured.tables import COLUMNS, kernel_of
from hwmodels.ops import (
    Collective,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    PrefillAttention,
    Sampling,
    Source,
)
from hwmodels.profile import (
    HardwareProfile,
    find_shipped,
    open_profile,
    profile_name,
    read_profile,
    shipped_profiles,
    version_numbers,
)
from hwmodels.provenance import durations_rest_on
from hwmodels.roofline import RooflineCostModel

KERNELS = {
    name: path for name, path in shipped_profiles().items() if open_profile(path).kind == "kernels"
}
MEASURED_GPUS = ("a100_sxm", "h100_sxm", "h200_sxm")
MIB = 2**20

# Held-out median and P90, per cent, that the tables of vLLM must reach.
BARS = {
    "gemm": (3.0, 13.0),
    "prefill": (3.3, 12.0),
    "decode": (2.3, 9.0),
    "all_reduce": (4.0, 12.0),
}
A100_GEMM = (3.3, 14.0)

OPS = [
    Gemm(1, 6144, 4096),
    Gemm(300, 28672, 4096, "fp8", "fp8"),
    Gemm(8192, 128256, 4096),
    Gemm(64, 4096, 4096, "bf16", "int4"),
    ExpertGemm(64, 2048, 768, 1536, 128, 128, 8),
    ExpertGemm(64, 2048, 768, 1536, 128, 128, 8, "bf16", "mxfp4"),
    PrefillAttention(512, 2048, 32, 8, 128, 128),
    PrefillAttention(512, 512, 28, 4, 128, 128, "fp8", joined=True),
    PrefillAttention(512, 512, 64, 8, 64, 64, window=128),
    PrefillAttention(512, 512, 16, 16, 192, 128),
    DecodeAttention(64, 65536, 1024, 32, 8, 128, 128, 4096.0),
    DecodeAttention(64, 65536, 1024, 40, 40, 128, 128, 10240.0, "fp8"),
    DecodeAttention(64, 65536, 1024, 12, 4, 96, 96, 1536.0),
    DecodeAttention(64, 65536, 1024, 16, 1, 576, 512, 1152.0),
    Elementwise(1e6, 2),
    Collective("all_reduce", MIB, 4),
    Collective("all_reduce", 64 * MIB, 8),
    Collective("all_gather", MIB, 6),
    Collective("all_to_all", MIB, 8),
    Collective("send_recv", MIB, 2),
    Sampling(64, 128256),
]


@pytest.fixture(params=sorted(KERNELS))
def profile(request: pytest.FixtureRequest) -> HardwareProfile:
    return open_profile(KERNELS[request.param])


def test_three_engines_on_three_gpus_are_shipped() -> None:
    for gpu in MEASURED_GPUS:
        for engine in ("vllm", "trtllm", "sglang"):
            assert find_shipped(gpu, engine) is not None
    assert sum(path.stat().st_size for path in KERNELS.values()) < 6e6


def test_tables_are_whole(profile: HardwareProfile) -> None:
    whole = read_profile(KERNELS[profile.name])
    assert {"gemm.bf16", "prefill.128.bf16", "decode.128.bf16"} <= set(whole.tables)
    for name, table in whole.tables.items():
        axes = COLUMNS[kernel_of(name)]
        assert tuple(table) == (*axes, "seconds"), name
        keys = np.stack([table[axis].astype(np.int64) for axis in axes], axis=1)
        # Sorted and unique: the first axis that changes from a row to the next rises.
        steps = np.diff(keys, axis=0)
        first = np.argmax(steps != 0, axis=1)
        assert np.all(steps[np.arange(len(steps)), first] > 0), name
        assert keys.min() > 0
        assert np.all(np.isfinite(table["seconds"]))
        # The shortest kernel and the longest anyone measured.
        assert 1e-6 < float(table["seconds"].min()) <= float(table["seconds"].max()) < 10, name


def test_names_and_sources_are_said(profile: HardwareProfile) -> None:
    assert profile.name == profile_name(profile.gpu, profile.engine, profile.engine_version)
    assert profile.gpu in GPUS
    assert profile.provenance.licence == "Apache-2.0"
    assert re.match(r"aiconfigurator(-core)? 0\.\d+\.0 ", profile.provenance.source)
    assert profile.provenance.versions["gemm"].startswith(profile.engine)
    assert version_numbers(profile.engine_version) != (0, 0, 0, 0)


def test_every_operation_has_a_price(profile: HardwareProfile) -> None:
    gpu = GPUS[profile.gpu]
    model, physics = MeasuredCostModel(profile, gpu), RooflineCostModel(gpu)
    for op in OPS:
        cost = model.cost(op)
        assert cost.seconds > 0, op
        # Another order of magnitude than physics would be a wrong unit or a wrong row.
        assert 0.1 < cost.seconds / physics.cost(op).seconds < 10, op


def test_held_out_errors_are_stored_and_meet_the_bar(profile: HardwareProfile) -> None:
    for family, bar in BARS.items():
        error = profile.held_out[family]
        assert error.seed == SEED
        if profile.engine != "vllm":
            continue
        median, p90 = A100_GEMM if (profile.gpu, family) == ("a100_sxm", "gemm") else bar
        assert error.median_pct <= median, family
        assert error.p90_pct <= p90, family


@pytest.mark.parametrize(
    ("gpu", "family"),
    [("a100_sxm", "decode"), ("h100_sxm", "prefill mla"), ("h200_sxm", "decode mla")],
)
def test_stored_errors_are_what_judging_finds(gpu: str, family: str) -> None:
    path = find_shipped(gpu, "vllm")
    assert path is not None
    shipped = open_profile(path)
    judged = next(known for known in FAMILIES if known.name == family)
    found = family_error(shipped, judged, SEED)
    assert found == shipped.held_out[family]


# Microseconds on H100, 32 heads over 8 KV heads of 128, by context and batch: vLLM 0.24.0.
DECODE_US = {
    2: {1: 11.8, 16: 12.7, 64: 24.3, 256: 66.5, 2048: 442.6},
    128: {1: 11.7, 64: 26.1, 512: 150.9, 2048: 486.0},
    1024: {1: 13.6, 16: 36.1, 64: 119.4, 256: 364.4},
    8192: {1: 19.8, 16: 210.9, 64: 688.2},
    32768: {1: 67.7, 16: 692.0},
}


def test_measured_decode_comes_back_as_measured() -> None:
    path = find_shipped("h100_sxm", "vllm", "0.24.0")
    assert path is not None
    model = MeasuredCostModel(open_profile(path), GPUS["h100_sxm"], as_measured=True)
    for context, row in DECODE_US.items():
        for seqs, us in row.items():
            op = DecodeAttention(seqs, seqs * context, context, 32, 8, 128, 128, 4096.0)
            cost = model.cost(op)
            assert cost.seconds * 1e6 == pytest.approx(us, abs=0.06)
            assert cost.source is Source.TABLE


def test_the_all_reduce_of_each_engine_jumps_where_it_hands_over() -> None:
    vllm, trtllm = (cost_model_for("a100_sxm", engine) for engine in ("vllm", "trtllm"))
    below, at = (Collective("all_reduce", size, 2) for size in (8 * MIB - 16, 8 * MIB))
    assert vllm.cost(at).seconds > 1.7 * vllm.cost(below).seconds
    assert trtllm.cost(at).seconds == pytest.approx(trtllm.cost(below).seconds, rel=0.01)


def test_engines_have_their_own_durations() -> None:
    op = DecodeAttention(64, 65536, 1024, 32, 8, 128, 128, 4096.0)
    found = {e: cost_model_for("h100_sxm", e).cost(op).seconds for e in ("vllm", "trtllm")}
    assert found["vllm"] != found["trtllm"]
    assert isinstance(cost_model_for("l40s"), RooflineCostModel)
    assert isinstance(cost_model_for("h100_sxm", "another"), RooflineCostModel)


def test_what_durations_rest_on_is_said() -> None:
    assert durations_rest_on("h100_sxm").startswith("kernels measured under vllm 0.24.0; held-out")
    assert "trtllm" in durations_rest_on("h200_sxm", "trtllm")
    assert durations_rest_on("l40s").startswith("roofline, unmeasured")
