from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrate.measurement import Measurement, read_measurements, write_measurements
from calibrate.sources.measurements import import_measurements
from hwmodels.measured.tables import COLUMNS, FLAGS, kernel_of
from twin.errors import InputError


def row(**changes: Any) -> Measurement:
    fields: dict[str, Any] = {
        "kernel": "gemm.bf16",
        "shape": {"m": 1, "n": 1024, "k": 1024},
        "seconds_median": 1e-5,
        "seconds_p90": 1.1e-5,
        "repetitions": 50,
        "gpu": "h200_sxm",
        "engine": "triton",
        "engine_version": "3.6.0",
        "sm_clock_hz": 1.98e9,
        "memory_clock_hz": 3.2e9,
        "driver": "570.1",
        "cuda": "12.8",
        "kernel_sha256": "a" * 64,
        "l2": "warm",
        "measured_on": "2026-11-01",
        "versions": {"torch": "2.11"},
    }
    return Measurement(**{**fields, **changes})


ATTENTION = {"heads": 32, "kv_heads": 8, "batch": 4, "length": 1024}
ROWS = [
    row(),
    row(shape={"m": 8, "n": 1024, "k": 1024}, seconds_median=1.05e-5),
    row(kernel="decode.128.bf16", shape=ATTENTION, l2="cold"),
]


def test_rows_survive_csv(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    write_measurements(path, ROWS)
    assert read_measurements(path) == ROWS
    assert path.read_text().splitlines()[0].endswith("shape.m,shape.n,version.torch")


def test_rows_survive_parquet(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    write_measurements(path, ROWS[:2])
    import pyarrow.csv

    pq.write_table(pyarrow.csv.read_csv(path), tmp_path / "m.parquet")
    table = pq.read_table(tmp_path / "m.parquet")
    assert isinstance(table, pa.Table)
    # Arrow's CSV reader makes versions and dates numbers and dates; a writer of Parquet keeps text.
    text = {"engine_version", "driver", "cuda", "measured_on", "version.torch"}
    columns = {
        name: table[name].cast(pa.string()) if name in text else table[name]
        for name in table.column_names
    }
    columns["driver"] = pa.array(["570.1", "570.1"])
    pq.write_table(pa.table(columns), tmp_path / "m.parquet")
    assert [r.shape for r in read_measurements(tmp_path / "m.parquet")] == [
        r.shape for r in ROWS[:2]
    ]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    shapes=st.lists(
        st.tuples(st.sampled_from(["gemm.bf16", "decode.128.bf16", "chase", "rms_norm.bf16"]),
                  st.integers(1, 2**40), st.integers(0, 2)),
        min_size=1, max_size=6,
    ),
    median=st.floats(1e-9, 700),
    factor=st.floats(1.0, 5.0),
    clock=st.none() | st.floats(1e6, 1e10),
    driver=st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=9)
    .filter(lambda text: text.strip() == text),
    suffix=st.sampled_from([".csv", ".parquet"]),
)  # fmt: skip
def test_any_rows_survive_both_formats(
    tmp_path: Path, shapes: Any, median: float, factor: float, clock: Any, driver: str, suffix: str
) -> None:
    rows = []
    for kernel, size, flag in shapes:
        axes = COLUMNS[kernel_of(kernel)]
        shape = {axis: flag if axis in FLAGS else size for axis in axes}
        times = {"seconds_median": median, "seconds_p90": median * factor}
        rows.append(row(kernel=kernel, shape=shape, sm_clock_hz=clock, driver=driver, **times))
    path = tmp_path / f"m{suffix}"
    write_measurements(path, rows)
    assert read_measurements(path) == rows


def test_only_flags_and_offsets_may_be_zero() -> None:
    row(kernel="rms_norm.bf16", shape={"rows": 1, "columns": 8, "residual": 0})
    with pytest.raises(ValueError, match=r"shape\.n is 0; at least 1 is needed"):
        row(shape={"m": 1, "n": 0, "k": 8})


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("seconds_median", "-1", "row 2, column seconds_median"),
        ("seconds_p90", "1e-9", "seconds_p90 is below seconds_median"),
        ("shape.k", "", "gemm.bf16 has the axes m, n, k"),
        ("kernel", "gemv", "unknown kernel 'gemv'"),
        ("repetitions", "3", "column repetitions"),
        ("kernel_sha256", "xyz", "column kernel_sha256"),
        ("l2", "tepid", "column l2"),
        ("seconds_median", "nan", "column seconds_median"),
    ],
)
def test_a_wrong_cell_is_named(tmp_path: Path, column: str, value: str, message: str) -> None:
    path = tmp_path / "m.csv"
    write_measurements(path, ROWS[:2])
    header, first, second = path.read_text().splitlines()
    cells = second.split(",")
    cells[header.split(",").index(column)] = value
    path.write_text("\n".join([header, first, ",".join(cells)]) + "\n")
    with pytest.raises(InputError) as raised:
        read_measurements(path)
    assert message in str(raised.value)
    assert "m.csv, row 2" in str(raised.value)


def test_files_without_rows_or_of_no_use_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read measurements"):
        read_measurements(tmp_path / "none.csv")
    (tmp_path / "empty.csv").write_text("kernel\n")
    with pytest.raises(InputError, match="no measurements"):
        read_measurements(tmp_path / "empty.csv")


def test_all_missing_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("kernel,shape.m,gpu\ngemm.bf16,1,h200_sxm\n")
    with pytest.raises(InputError, match=r"row 1: lacks seconds_median, .*measured_on; a row is"):
        read_measurements(path)
    with pytest.raises(InputError, match=r"\(Is a directory\); name a CSV or Parquet file"):
        read_measurements(tmp_path)


def test_the_columns_are_documented() -> None:
    page = Path(__file__).parents[3] / "docs" / "profiles.md"
    section = page.read_text(encoding="utf-8").split("### Own measurements")[1].split("\n## ")[0]
    for name in Measurement.model_fields:
        assert f"`{name}" in section.replace("`version.", "`versions."), name


def test_rows_become_tables(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    write_measurements(path, ROWS)
    profile = import_measurements(path, "h200_sxm", "triton", None)
    assert profile.name == "h200_sxm-triton-3.6.0"
    gemm = profile.tables["gemm.bf16"]
    assert gemm["m"].tolist() == [1, 8]
    np.testing.assert_allclose(gemm["seconds"], [1e-5, 1.05e-5], rtol=2e-4)
    assert profile.facts == {"decode_l2": "cold"}
    assert profile.provenance.versions == {"host": "driver 570.1, CUDA 12.8", "torch": "2.11"}


def test_rows_before_and_after_a_kernel_changed_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    changed = row(shape={"m": 77, "n": 8, "k": 8}, kernel_sha256="f" * 64)
    write_measurements(path, [*ROWS, changed])
    with pytest.raises(InputError, match=r"gemm\.bf16 was measured from several versions"):
        import_measurements(path, "h200_sxm", "triton", None)


def test_mixed_versions_are_refused_unless_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    write_measurements(path, [*ROWS, row(engine_version="3.9.0")])
    with pytest.raises(InputError, match=r"several engine_version: 3\.6\.0, 3\.9\.0"):
        import_measurements(path, "h200_sxm", "triton", None)
    profile = import_measurements(path, "h200_sxm", "triton", "3.6.0")
    assert len(profile.tables["gemm.bf16"]["m"]) == 2
    with pytest.raises(InputError, match=r"no measurements of that GPU and engine; the file holds"):
        import_measurements(path, "a100_sxm", "triton", None)
