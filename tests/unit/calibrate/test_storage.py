"""Measuring a disk, fitting its tier, and the command that does both."""

import errno
import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

from calibrate.cli import app
from calibrate.storage_fit import fit_lines, fit_tier, held_out_errors
from hwmodels.storage_tier import TierProvenance, TierRow, read_tier
from kernels.probes import block_io, direct_io, storage
from kernels.probes.block_io import StoragePoint
from kernels.probes.direct_io import StorageError, probe_direct_io
from kernels.probes.storage import measure_storage, plan
from twin.cli.running import run

pytestmark = pytest.mark.skipif(
    not hasattr(os, "posix_fadvise"), reason="the page cache is steered as Linux does"
)
FILE_BYTES = 8 * 2**20
BUFFERED = tuple(
    StoragePoint(direction, mode, size, depth, fragments)
    for direction, mode in (("read", "buffered"), ("read", "cached"), ("write", "buffered"))
    for size, depth, fragments in ((4096, 1, 1), (65536, 2, 4), (2**18, 1, 1))
)


def refuse_direct(monkeypatch):
    """Have O_DIRECT refused, as file systems without it do."""
    opened = os.open

    def without(path, flags, *args, **kwargs):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument", path)
        return opened(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", without)


def test_the_probe_needs_neither_pytorch_nor_triton(tmp_path):
    code = (
        "import sys; import kernels.probes.storage;"
        "sys.exit(bool({'torch', 'triton', 'numpy'} & set(sys.modules)))"
    )
    assert os.spawnl(os.P_WAIT, sys.executable, sys.executable, "-c", code) == 0


def test_blocks_are_read_and_written_and_nothing_stays(tmp_path):
    report = measure_storage(tmp_path, budget_s=1.0, file_bytes=FILE_BYTES, points=BUFFERED)
    assert [row.point for row in report.rows] == list(BUFFERED)
    assert report.left_out == 0
    for row in report.rows:
        assert row.operations >= 1
        assert 0 < row.seconds_median <= row.seconds_p90 <= row.seconds_p99
        assert row.bytes_per_s > 0
        if row.point.queue_depth == 1:
            assert row.bytes_per_s == pytest.approx(row.point.block_bytes / row.seconds_mean)
    assert list(tmp_path.iterdir()) == []


def test_direct_blocks_where_there_is_direct_io(tmp_path):
    found = probe_direct_io(tmp_path)
    if found.problem:
        pytest.skip(f"O_DIRECT isn't supported here: {found.problem}")
    points = tuple(
        StoragePoint(direction, "direct", 65536, 2, fragments)
        for direction in ("read", "write")
        for fragments in (1, 4)
    )
    report = measure_storage(tmp_path, budget_s=0.5, file_bytes=FILE_BYTES, points=points)
    assert all(row.operations >= 20 for row in report.rows)
    by = {(one.buffer, one.offset, one.length): one.error for one in found.combinations}
    assert len(by) == 8
    assert by[True, True, True] == ""
    assert set(found.least_bytes) <= {"buffer", "offset", "length"}
    for axis, name in enumerate(("buffer", "offset", "length")):
        off_by_one = tuple(at != axis for at in range(3))
        assert (found.least_bytes[name] == 1) == (by[off_by_one] == "")


def test_a_file_system_without_direct_io_is_told_and_measured_buffered(tmp_path, monkeypatch):
    refuse_direct(monkeypatch)
    found = probe_direct_io(tmp_path)
    assert "refuses O_DIRECT (EINVAL)" in found.problem or "is memory" in found.problem
    report = measure_storage(tmp_path, budget_s=0.3, file_bytes=FILE_BYTES, points=BUFFERED[:2])
    assert report.direct_io == found
    assert len(report.rows) == 2
    with pytest.raises(StorageError, match="O_DIRECT does not work here"):
        measure_storage(
            tmp_path,
            budget_s=0.3,
            file_bytes=FILE_BYTES,
            points=(StoragePoint("read", "direct", 4096),),
        )
    assert list(tmp_path.iterdir()) == []


def test_memory_is_no_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(direct_io, "file_system", lambda folder: ("tmpfs", "tmpfs"))
    assert probe_direct_io(tmp_path).problem.startswith("tmpfs is memory")


def test_a_plan_without_direct_io_has_none_and_all_points_are_allowed():
    assert {point.io_mode for point in plan(direct=False)} == {"buffered", "cached", "synced"}
    points = plan(direct=True)
    assert len(set(points)) == len(points)
    depths = [point.queue_depth for point in points]
    assert depths == sorted(depths)
    for point in points:
        block_io._check_point(point, storage._FILE_BYTES)
    small = plan(direct=True, file_bytes=FILE_BYTES)
    assert max(point.block_bytes * point.queue_depth for point in small) == FILE_BYTES


def test_a_budget_that_is_spent_leaves_points_out(tmp_path):
    report = measure_storage(tmp_path, budget_s=1e-9, file_bytes=FILE_BYTES, points=BUFFERED)
    assert report.rows == ()
    assert report.left_out == len(BUFFERED)


@pytest.mark.parametrize(
    ("point", "told"),
    [
        (StoragePoint("read", "synced", 4096), "unknown mode"),
        (StoragePoint("read", "cached", 4096, 1, 2), "whole pages"),
        (StoragePoint("read", "cached", 12288, 1, 5), "whole pages"),
        (StoragePoint("read", "cached", 2**22, 4), "larger file"),
    ],
)
def test_points_that_cannot_be_are_refused(point, told, tmp_path):
    with pytest.raises(StorageError, match=told):
        measure_storage(tmp_path, budget_s=1.0, file_bytes=FILE_BYTES, points=(point,))


def test_folders_that_cannot_be_measured(tmp_path, monkeypatch):
    with pytest.raises(StorageError, match="is not a folder"):
        measure_storage(tmp_path / "none", budget_s=1.0)
    with pytest.raises(StorageError, match="MiB of room"):
        measure_storage(tmp_path, budget_s=1.0, file_bytes=2**60)

    def full(*args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(direct_io.tempfile, "mkstemp", full)
    monkeypatch.setattr(direct_io, "file_system", lambda folder: ("/dev/x", "ext4"))
    with pytest.raises(StorageError, match="takes no files: Read-only"):
        probe_direct_io(tmp_path)


def test_other_data_than_was_written_is_caught(tmp_path, monkeypatch):
    read = os.preadv

    def flipped(handle, buffers, place):
        count = read(handle, buffers, place)
        buffers[0][0] ^= 1
        return count

    monkeypatch.setattr(block_io.os, "preadv", flipped)
    point = StoragePoint("read", "cached", 4096, 2)
    with pytest.raises(StorageError, match="other data came back"):
        measure_storage(tmp_path, budget_s=0.5, file_bytes=FILE_BYTES, points=(point,))
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_never_happened_is_caught(tmp_path, monkeypatch):
    def forgetful(handle, buffers, place):
        return len(buffers[0])

    monkeypatch.setattr(block_io.os, "pwritev", forgetful)
    monkeypatch.setattr(block_io, "_stamp", lambda offset: (offset + 7).to_bytes(8, "little"))
    monkeypatch.setattr(storage, "prime", lambda handle, size: os.pwrite(handle, bytes(size), 0))
    point = StoragePoint("write", "buffered", 4096)
    with pytest.raises(StorageError, match="was not written"):
        measure_storage(tmp_path, budget_s=0.2, file_bytes=FILE_BYTES, points=(point,))


def rows_of(alpha_s, each_s, rate, *, noise=0.0, fragmented=True, seed=0):
    """Rows of a disk that follows the form, with lognormal noise."""
    random = np.random.default_rng(seed)
    shapes = [(2**power, 1) for power in range(12, 23, 2)]
    shapes += [(2**20, 16), (2**18, 4), (2**20, 64)] if fragmented else []
    found = []
    for size, pieces in shapes:
        seconds = alpha_s + pieces * each_s + size / rate
        seconds *= float(np.exp(random.normal(0, noise)))
        found.append(
            TierRow("read", "direct", 1, size, pieces, 100, 1.2 * seconds, seconds,
                    2 * seconds, 2.4 * seconds, size / seconds)
        )  # fmt: skip
    return found


def test_planted_parameters_are_found():
    (line,) = fit_lines(rows_of(80e-6, 12e-6, 3e9))
    assert line.alpha_s == pytest.approx(80e-6, rel=0.01)
    assert line.per_fragment_s == pytest.approx(12e-6, rel=0.01)
    assert line.bytes_per_s == pytest.approx(3e9, rel=0.01)
    assert line.mean_over_median == pytest.approx(1.2)
    assert line.p99_over_mean == pytest.approx(2.0)
    assert line.rows == 9


def test_one_wild_row_does_not_move_the_fit():
    rows = rows_of(80e-6, 12e-6, 3e9)
    rows[3] = replace(rows[3], seconds_median=9 * rows[3].seconds_median)
    (line,) = fit_lines(rows)
    assert line.alpha_s == pytest.approx(80e-6, rel=0.15)
    assert line.bytes_per_s == pytest.approx(3e9, rel=0.15)


def test_noise_shows_in_the_held_out_error():
    (exact,) = held_out_errors(rows_of(80e-6, 12e-6, 3e9))
    (noisy,) = held_out_errors(rows_of(80e-6, 12e-6, 3e9, noise=0.2))
    assert exact.median_pct < 0.5
    assert 3 < noisy.median_pct < 60
    # The smallest and the largest size are never left out.
    assert exact.rows == 7


def test_whole_blocks_alone_say_nothing_of_fragments():
    (line,) = fit_lines(rows_of(80e-6, 0.0, 3e9, fragmented=False))
    assert line.per_fragment_s is None
    assert line.alpha_s == pytest.approx(80e-6, rel=0.01)


@pytest.mark.parametrize("count", [0, 3])
def test_too_few_rows_are_not_fitted(count):
    assert fit_lines(rows_of(80e-6, 12e-6, 3e9)[:count]) == ()


def test_a_report_without_rows_is_no_tier():
    report = storage.StorageReport(direct_io.DirectIo("none"), (), 5)
    with pytest.raises(ValueError, match="more time"):
        fit_tier("x", report, TierProvenance("d", "f", "k", "2026-11-30", ""))


@pytest.fixture
def quick(monkeypatch):
    """A file and a plan that take a second."""

    def measured(folder, *, budget_s, progress):
        points = tuple(
            StoragePoint("read", "cached", size, 1, pieces)
            for size, pieces in ((4096, 1), (16384, 1), (65536, 1), (2**18, 1), (65536, 4))
        )
        return measure_storage(
            folder, budget_s=0.5, file_bytes=FILE_BYTES, points=points, progress=progress
        )

    monkeypatch.setattr(storage, "measure_storage", measured)


def test_the_command_writes_a_tier_and_tells_it(quick, tmp_path, capsys):
    folder, out = tmp_path / "disk", tmp_path / "tier.json"
    folder.mkdir()
    arguments = ["storage", str(folder), "--out", str(out), "--json", "-", "--note", "a test"]
    assert run(app, arguments) == 0
    told = capsys.readouterr()
    tier = read_tier(out)
    assert tier.name == "tier"
    assert "a test" in tier.provenance.note
    assert [(line.direction, line.io_mode) for line in tier.lines] == [("read", "cached")]
    data = json.loads(told.out)
    assert data.pop("left_out") == 0
    assert data["lines"][0]["rows"] == 5
    assert "read cached" in told.err
    assert "O_DIRECT" in told.err
    assert list(folder.iterdir()) == []


def test_the_command_says_that_there_is_no_direct_io(quick, tmp_path, capsys, monkeypatch):
    refuse_direct(monkeypatch)
    monkeypatch.setattr(direct_io, "file_system", lambda folder: ("none", "odd"))
    assert run(app, ["storage", str(tmp_path), "--out", str(tmp_path / "t.json")]) == 0
    told = capsys.readouterr().out
    assert "O_DIRECT isn't supported here: odd refuses O_DIRECT (EINVAL)" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["none", "--out", "t.json"], "none: is not a folder; name a folder on a local disk"),
        ([".", "--out", "no/t.json"], "its folder does not exist"),
        ([".", "--out", "t.json", "--json", "t.json"], "writes there too"),
        ([".", "--out", "t.json", "--minutes", "0"], "--minutes"),
        (["."], "--out"),
        (["", "--out", "t.json"], "is empty; name a folder"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_2(arguments, told, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(app, ["storage", *arguments]) == 2
    error = capsys.readouterr().err
    assert told in error
    assert "Traceback" not in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "t.json").exists()
