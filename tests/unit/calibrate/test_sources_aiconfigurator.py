import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from aiconfigurator_tables import GPU, folder, wheel

from calibrate.sources.aiconfigurator import import_profile
from calibrate.sources.aiconfigurator.clean import drop_spikes
from calibrate.sources.tabulate import tabulate
from hwmodels.profile import HardwareProfile, write_profile
from twin.errors import InputError


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> HardwareProfile:
    return import_profile(folder(tmp_path_factory.mktemp("aic")), GPU, "vllm")


def only(profile: HardwareProfile, table: str) -> dict[str, list[float]]:
    return {name: np.asarray(col).tolist() for name, col in profile.tables[table].items()}


def us(values: list[float]) -> list[float]:
    return [round(value * 1e6, 1) for value in values]


def test_milliseconds_become_seconds_and_rows_are_sorted(imported: HardwareProfile) -> None:
    table = only(imported, "gemm.bf16")
    assert table["m"] == [1, 1, 8]
    assert table["n"] == [1024, 8192, 1024]
    assert us(table["seconds"]) == [20.0, 2.0, 24.0]  # of 0.24.0, the newest


def test_each_format_is_a_table_and_unknown_ones_are_left(imported: HardwareProfile) -> None:
    assert "gemm.fp8_block" in imported.tables
    assert {name for name in imported.tables if name.startswith("gemm")} == {
        "gemm.bf16",
        "gemm.fp8_block",
    }
    assert "gemm.bf16: 1 rows above the memory's peak (L2-resident)" in imported.provenance.notes
    assert "gemm.fp8_block: DeepGemm" in imported.provenance.notes


def test_repeated_keys_give_their_median_and_other_kernels_go(imported: HardwareProfile) -> None:
    table = only(imported, "prefill.128.bf16")
    assert table["length"] == [512, 1024]
    assert table["kv_heads"] == [8, 8]
    assert us(table["seconds"]) == [21.0, 50.0]
    assert "prefill.128.bf16: 1 repeated rows, median taken" in imported.provenance.notes


def test_windows_are_their_own_tables_in_prefill_alone(imported: HardwareProfile) -> None:
    assert us(only(imported, "prefill.128w1024.bf16")["seconds"]) == [60.0]
    assert [name for name in imported.tables if name.startswith("decode.128")] == [
        "decode.128.bf16"
    ]


def test_a_decode_row_holds_one_token_more_than_its_step(imported: HardwareProfile) -> None:
    table = only(imported, "decode.128.bf16")
    # 512 took a quarter of both neighbours: a measuring error.
    assert table["length"] == [128, 256, 1024, 2048]
    dropped = "decode.128.bf16: 1 rows dropped, half or double of both neighbours"
    assert dropped in imported.provenance.notes


def test_collective_sizes_are_elements(imported: HardwareProfile) -> None:
    table = only(imported, "nccl.all_reduce")
    assert table["bytes"] == [2048, 2097152]
    assert us(table["seconds"]) == [6.0, 20.0]
    assert "nccl.all_to_all" in imported.tables


def test_the_engines_all_reduce_is_its_own_and_in_a_graph(tmp_path: Path) -> None:
    root = folder(tmp_path)
    table = only(import_profile(root, GPU, "vllm"), "engine_all_reduce")
    assert (table["bytes"], us(table["seconds"])) == ([2048, 4096], [4.0, 5.0])
    # 0.14.0's file holds another engine's rows: the next nearest version serves.
    old = import_profile(root, GPU, "vllm", "0.14.0")
    assert old.provenance.versions["custom_allreduce"] == "vllm 0.24.0"


def test_experts_are_of_one_rank_under_skewed_routing(imported: HardwareProfile) -> None:
    table = only(imported, "experts.bf16")
    assert (table["intermediate"], table["local"]) == ([384, 384], [32, 32])
    assert (table["tokens"], us(table["seconds"])) == ([8, 16], [50.0, 60.0])


def test_vllm_borrows_sglangs_latent_attention_and_says_so(imported: HardwareProfile) -> None:
    table = only(imported, "decode.mla.bf16")
    assert (table["heads"], table["kv_heads"], table["length"]) == ([16], [1], [128])
    assert any("SGLang 0.5.14's" in note for note in imported.provenance.notes)


def test_the_nearest_version_of_each_table_is_taken(tmp_path: Path) -> None:
    old = import_profile(folder(tmp_path), GPU, "vllm", "0.15.1")
    assert (old.name, old.engine_version) == (f"{GPU}-vllm-0.14.0", "0.14.0")
    assert us(only(old, "gemm.bf16")["seconds"]) == [10.0, 1.0, 12.0]
    assert old.provenance.versions["context_attention"] == "vllm 0.24.0"


def test_a_wheel_gives_the_same_profile(tmp_path: Path) -> None:
    from_wheel = import_profile(wheel(tmp_path), GPU, "vllm")
    assert write_profile(from_wheel) == write_profile(import_profile(tmp_path, GPU, "vllm"))


def test_what_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no kernel tables here"):
        import_profile(tmp_path, GPU, "vllm")
    with pytest.raises(InputError, match="no GEMM table of b200_sxm under vllm"):
        import_profile(folder(tmp_path), "b200_sxm", "vllm")


def test_a_damaged_table_is_said_in_one_line(tmp_path: Path) -> None:
    root = folder(tmp_path)
    (root / f"pkg/systems/data/{GPU}/gemm/vllm/0.24.0/gemm_perf.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="cannot read this table"):
        import_profile(root, GPU, "vllm")


def test_rounding_keeps_seconds_to_a_tenth_of_a_per_mille() -> None:
    exact = np.exp(np.random.default_rng(1).uniform(-14, 0, 1000))
    table, repeated = tabulate({"m": np.arange(1, 1001)}, exact)
    assert repeated == 0
    assert float(np.max(np.abs(table["seconds"] / exact - 1))) < 1.3e-4


def test_only_lone_spikes_between_equal_shapes_are_dropped() -> None:
    columns = {
        "batch": np.array([1, 1, 1, 1, 2, 2]),
        "length": np.array([1, 2, 3, 4, 1, 2]),
        "seconds": np.array([1.0, 9.0, 1.0, 1.1, 0.1, 9.0], dtype=np.float32),
    }
    kept, dropped = drop_spikes(columns, "length")
    assert dropped == 1
    assert kept["seconds"].tolist() == pytest.approx([1.0, 1.0, 1.1, 0.1, 9.0])
