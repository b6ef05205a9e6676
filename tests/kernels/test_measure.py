"""Measuring with real kernels: the dry run launches them, the bench says what goes wrong."""

import inspect
import json
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from calibrate.cli import app
from calibrate.measuring.adapters import case_shape
from calibrate.measuring.bench import CudaBench, as_timed, first_line
from calibrate.measuring.dry_run import DryRunBench
from calibrate.measuring.hashing import module_sha256, sources_sha256
from calibrate.measuring.item import DeviceLost, Item, Unmeasurable
from calibrate.measuring.library import NAME as FP8_LIBRARY
from calibrate.measuring.library import fp8_library
from calibrate.measuring.plan import kernel_items, smallest
from hwmodels.gpus import GPUS
from hwmodels.measured.tables import COLUMNS, PROBES
from kernels.case import Case
from kernels.catalogue import KERNELS
from kernels.norm.rms_norm import RMS_NORM
from kernels.timing import FakeTimer, L2State, Timing
from twin.cli.running import run

CPU = torch.device("cpu")


@dataclass(frozen=True)
class FakeProbe:
    """A probe with the fields of `kernels.probes.probe.Probe` that measuring uses."""

    launched: list[str]
    needs: str = "any"
    small: tuple[dict[str, int], ...] = ({"bytes": 4096, "mode": 0},)

    def measure(self, shape: Any, device: torch.device, timer: Any) -> Timing:
        self.launched.append(f"{shape['bytes']} on {device}")
        return timer.time(lambda: None, l2=L2State.COLD)


def norm(rows: int = 4, **more: Any) -> Item:
    shape = {"rows": rows, "columns": 64, "residual": 0}
    fields = {"family": "small", "table": "rms_norm.bf16", "shape": shape, "launches": "rms_norm"}
    return Item(**{**fields, "dtype": "float32", "l2": "warm", **more})


def probe_item() -> Item:
    shape = {"bytes": 2**20, "mode": 0}
    return Item("stream", "stream", shape, "stream", l2=None, is_probe=True)


def test_a_dry_run_launches_each_kernel_and_probe_once():
    probe = FakeProbe([])
    launches = []

    def counted(*arguments: Any) -> Case:
        case = RMS_NORM.make_case(*arguments)
        launches.append(arguments[0])
        return case

    kernel = type(RMS_NORM)(**{**{n: getattr(RMS_NORM, n) for n in RMS_NORM.__slots__},
                               "make_case": counted})  # fmt: skip
    bench = DryRunBench(CPU, {"rms_norm": kernel}, {"stream": probe}, GPUS["h200_sxm"], 0)
    timed = [bench.measure(norm(rows)) for rows in (1, 2, 3)]
    assert len(launches) == 1
    assert len({one.median_s for one in timed}) == 3
    assert all(one.median_s <= one.p90_s and one.repetitions >= 20 for one in timed)
    assert bench.measure(probe_item()).l2 == "cold"
    assert probe.launched == ["4096 on cpu"]
    assert bench.launched == ["rms_norm", "stream"]


def test_pretended_seconds_are_those_of_their_seed():
    def seconds(seed: int) -> float:
        bench = DryRunBench(CPU, {"rms_norm": RMS_NORM}, {}, GPUS["h200_sxm"], seed)
        return bench.measure(norm()).median_s

    assert seconds(1) == seconds(1) != seconds(2)


def test_a_dry_run_says_what_cannot_be_launched():
    def broken(*_: Any) -> Case:
        raise RuntimeError("no such instruction\nand a page of more")

    kernel = type(RMS_NORM)(**{**{n: getattr(RMS_NORM, n) for n in RMS_NORM.__slots__},
                               "make_case": broken})  # fmt: skip
    bench = DryRunBench(CPU, {"rms_norm": kernel}, {}, GPUS["h200_sxm"], 0)
    with pytest.raises(Unmeasurable, match=r"^RuntimeError: no such instruction$"):
        bench.measure(norm())
    with pytest.raises(Unmeasurable, match="there is no stream"):
        bench.measure(probe_item())
    with pytest.raises(Unmeasurable, match="there is no layer_norm"):
        bench.measure(norm(launches="layer_norm"))


@pytest.fixture
def answering(monkeypatch):
    """A GPU that still answers, as far as the bench asks."""
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _=None: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)


def cuda_bench(raises: Exception | None = None) -> CudaBench:
    def make_case(shape: Any, dtype: str, device: torch.device, seed: int) -> Case:
        if raises is not None:
            raise raises
        return RMS_NORM.make_case(shape, dtype, CPU, seed)

    kernel = type(RMS_NORM)(**{**{n: getattr(RMS_NORM, n) for n in RMS_NORM.__slots__},
                               "make_case": make_case})  # fmt: skip
    return CudaBench(
        CPU, {"rms_norm": kernel}, {"stream": FakeProbe([])}, FakeTimer(lambda: 2e-5), "0"
    )


def test_the_bench_times_a_kernel_and_a_probe():
    bench = cuda_bench()
    timed = bench.measure(norm())
    assert (timed.median_s, timed.l2, timed.repetitions) == (2e-5, "warm", 50)
    assert timed.sha256 == sources_sha256(RMS_NORM.sources, "")
    assert bench.measure(norm(work_s=1.0)).repetitions == 20
    assert bench.measure(probe_item()).sha256 == module_sha256(FakeProbe.measure)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (torch.OutOfMemoryError("tried to allocate 9 GiB"), "out of memory"),
        (NotImplementedError("fp8"), "NotImplementedError: fp8"),
        (ValueError(""), "ValueError:"),
    ],
)
def test_what_goes_wrong_is_a_reason(answering, error, reason):
    with pytest.raises(Unmeasurable) as raised:
        cuda_bench(error).measure(norm())
    assert str(raised.value) == reason


def test_a_gpu_that_no_longer_answers_is_lost(answering, monkeypatch):
    def gone(_: Any = None) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "synchronize", gone)
    with pytest.raises(DeviceLost, match="illegal memory access"):
        cuda_bench(ValueError("x")).measure(norm())


def test_an_interrupt_passes(answering):
    with pytest.raises(KeyboardInterrupt):
        cuda_bench(KeyboardInterrupt()).measure(norm())  # type: ignore[arg-type]


def test_times_that_no_row_can_hold_are_refused():
    none = Timing(np.zeros(20), L2State.COLD)
    with pytest.raises(Unmeasurable, match="took 0 s"):
        as_timed(none, "a" * 64)
    with pytest.raises(Unmeasurable, match="launched 5 times"):
        as_timed(Timing(np.ones(5), L2State.COLD), "a" * 64)


def test_the_hash_is_of_the_source_whichever_way_triton_wraps_it():
    (source,) = RMS_NORM.sources[:1]
    plain = source.fn
    assert sources_sha256([source], "") == sources_sha256([plain], "")
    assert sources_sha256([source], "") != sources_sha256([], "torch.matmul of torch 2")
    assert inspect.getsource(plain).startswith("@triton.jit")


def test_errors_are_one_line():
    assert first_line(RuntimeError("\n  a  b \n c")) == "RuntimeError: a b"
    assert len(first_line(RuntimeError("x" * 900))) <= 200


def test_the_librarys_fp8_product_is_right_where_it_runs():
    kernel = fp8_library()
    case = kernel.make_case({"m": 16, "n": 32, "k": 64}, "fp8", CPU, 3)
    try:
        case.launch()
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"not on this machine: {first_line(error)}")
    (wanted,) = case.oracle()
    assert torch.allclose(case.outputs[0].double(), wanted, rtol=2e-2, atol=2e-2)


QUEUES = {items[0].table: items for items, _ in smallest(kernel_items(GPUS["h200_sxm"]))}


@pytest.mark.parametrize("table", sorted(QUEUES))
def test_the_plans_shapes_are_those_the_kernels_take(table):
    """The point of each table whose operands are smallest makes a case."""
    item = min(QUEUES[table], key=lambda i: i.shape.get("n", 1) * i.shape.get("k", 1) * i.work_s)
    kernel = {**KERNELS, FP8_LIBRARY: fp8_library()}.get(item.launches)
    assert kernel is not None, f"there is no {item.launches}"
    assert item.dtype in kernel.dtypes
    case = kernel.make_case(case_shape(item), item.dtype, CPU, 1)
    assert case.moved_bytes > 0


def test_the_tables_of_probes_have_the_probes_axes():
    probes = pytest.importorskip("kernels.probes.catalogue").PROBES
    assert {name: probe.axes for name, probe in probes.items()} == PROBES
    assert {name: COLUMNS[name] for name in probes} == PROBES


def test_a_dry_run_from_rows_to_pictures(tmp_path, capsys):
    """The three commands on a CPU: every kernel and probe runs, and every output says it."""
    pytest.importorskip("kernels.probes.catalogue")
    rows = tmp_path / "rows"
    command = ["measure", "--dry-run", "--small", "--out", str(rows)]
    assert run(app, command) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("DRY RUN")
    report = json.loads((rows / "measure.json").read_text())
    assert report["pretended"] is True
    assert report["skipped"] == {}
    assert report["rows"] == report["measured"] > 100
    assert run(app, command) == 0
    assert re.search(rf": 0 rows in \d+ s, {report['rows']} from before", capsys.readouterr().out)
    assert run(app, ["fit", str(rows), "--out", str(tmp_path / "p.npz")]) == 0
    assert run(app, ["plot", str(tmp_path / "p-dry-run.npz"), "--out", str(tmp_path / "o")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("DRY RUN") == 2
    assert not {"kept)", "missed)"} & set(printed.split())
    assert (tmp_path / "o" / "gemm.svg").exists()
