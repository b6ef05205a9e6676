"""The suite by a fake clock: budget, drift, what can't be measured, interrupts, going on."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from measuring_fakes import FakeBench, gemm, session

from calibrate.measuring.item import DeviceLost, Unmeasurable
from calibrate.measuring.journal import Journal, read_journal
from calibrate.measuring.results import read_folder, write_results
from calibrate.measuring.suite import Budget, Outcome, Suite
from calibrate.measuring.summary import summary_lines
from twin.errors import InputError


def run(folder: Path, bench: FakeBench, items, seconds: float = 1e6, **more) -> Outcome:
    with Journal(folder, session(**more)) as journal:
        budget = Budget(seconds, lambda: bench.now_s, bench.now_s)
        return Suite(bench, journal, session(**more), budget).run(items)


def kept(folder: Path) -> list[int]:
    return sorted(dict(key.shape)["m"] for key in read_folder(folder).rows)


@pytest.mark.parametrize("seconds", [5.0, 20.0, 61.0, 200.0])
def test_the_budget_is_kept_to_within_an_item(tmp_path, seconds):
    bench = FakeBench(takes_s=1.7)
    outcome = run(tmp_path, bench, [gemm(m, box_s=0.1) for m in range(1, 500)], seconds)
    assert bench.now_s <= seconds + 1.7
    assert outcome.measured == len(kept(tmp_path)) > 0
    assert outcome.measured + outcome.not_reached == 499
    # Most of it is spent on items: warm-up reads and the reference take the rest.
    assert 1.7 * outcome.measured >= 0.8 * seconds - 8


def test_a_long_item_that_does_not_fit_leaves_room_for_a_short_one(tmp_path):
    bench = FakeBench()
    items = [gemm(1), gemm(2, box_s=60.0), gemm(3)]
    outcome = run(tmp_path, bench, items, 20.0)
    assert (kept(tmp_path), outcome.not_reached) == ([1, 3], 1)


def test_items_that_cannot_be_measured_are_skipped_with_their_reason(tmp_path):
    bench = FakeBench(raises={2: Unmeasurable("out of memory"), 3: Unmeasurable("no fp8 here")})
    outcome = run(tmp_path, bench, [gemm(m) for m in (1, 2, 3, 4)])
    assert kept(tmp_path) == [1, 4]
    assert outcome.reasons == {"out of memory": 1, "no fp8 here": 1}
    lines = summary_lines(tmp_path, read_folder(tmp_path), outcome, 4.0)
    assert "skipped, out of memory: gemm.bf16 m=2 n=4096 k=4096" in lines


def test_a_block_whose_reference_drifted_is_discarded_and_measured_again(tmp_path):
    reads = iter([4e12, 4e12, 3.8e12, 3.8e12, 3.8e12, 3.8e12])
    bench = FakeBench(reference=lambda: next(reads))
    outcome = run(tmp_path, bench, [gemm(m) for m in range(1, 31)])
    first = bench.measured[:15]
    assert bench.measured == [*range(1, 31), *first]  # the first block once more, at the end
    assert kept(tmp_path) == list(range(1, 31))
    assert outcome.measured == 30
    assert outcome.discarded == []


def test_a_block_that_drifts_twice_stays_discarded(tmp_path):
    values = [4e12, 4e12]

    def read() -> float:
        values.append(values[-1] * 0.95 if len(values) > 3 else 4e12)
        return values[-1]

    bench = FakeBench(reference=read)
    outcome = run(tmp_path, bench, [gemm(m) for m in range(1, 11)])
    assert kept(tmp_path) == []
    assert len(outcome.discarded) == 10
    assert bench.measured == [*range(1, 11), *range(1, 11)]


def test_small_drift_is_no_drift(tmp_path):
    reads = iter([4e12, 4e12, 3.9e12])
    outcome = run(tmp_path, FakeBench(reference=lambda: next(reads)), [gemm(1)])
    assert (kept(tmp_path), outcome.discarded) == ([1], [])


def test_a_run_goes_on_where_an_earlier_one_ended(tmp_path):
    first = FakeBench()
    run(tmp_path, first, [gemm(m) for m in range(1, 500)], 12.0)
    second = FakeBench()
    outcome = run(tmp_path, second, [gemm(m) for m in range(1, 12)])
    assert outcome.already == len(first.measured)
    assert second.measured == [m for m in range(1, 12) if m not in first.measured]
    assert kept(tmp_path) == list(range(1, 12))


def test_a_changed_kernel_is_measured_again(tmp_path):
    run(tmp_path, FakeBench(), [gemm(1), gemm(2)])
    outcome = run(tmp_path, FakeBench(sha="d" * 64), [gemm(1), gemm(2)])
    assert (outcome.already, outcome.measured) == (0, 2)
    assert {row.kernel_sha256 for row in read_folder(tmp_path).rows.values()} == {"d" * 64}


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_run_killed_in_the_middle_of_a_line_goes_on(tmp_path, cut):
    run(tmp_path, FakeBench(), [gemm(m) for m in (1, 2, 3)])
    path = tmp_path / "rows.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    assert kept(tmp_path) == [1, 2]
    bench = FakeBench()
    run(tmp_path, bench, [gemm(m) for m in (1, 2, 3, 4)])
    assert bench.measured == [3, 4]
    assert kept(tmp_path) == [1, 2, 3, 4]


def test_a_run_killed_in_its_first_line_begins_again(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"schema_ver')
    run(tmp_path, FakeBench(), [gemm(1)])
    assert kept(tmp_path) == [1]


def test_an_interrupt_keeps_what_is_done(tmp_path):
    bench = FakeBench(raises={3: KeyboardInterrupt()})
    with Journal(tmp_path, session()) as journal:
        suite = Suite(bench, journal, session(), Budget(1e6, lambda: bench.now_s, 0.0))
        with pytest.raises(KeyboardInterrupt):
            suite.run([gemm(m) for m in (1, 2, 3, 4)])
        write_results(tmp_path, journal.kept, suite.outcome)
    assert kept(tmp_path) == [1, 2]
    assert len((tmp_path / "measurements.csv").read_text().splitlines()) == 3


def test_a_lost_gpu_ends_the_run_and_its_item_is_not_tried_again(tmp_path):
    bench = FakeBench(raises={2: DeviceLost("illegal memory access")})
    outcome = run(tmp_path, bench, [gemm(m) for m in (1, 2, 3)])
    assert (bench.measured, outcome.lost) == ([1], "illegal memory access")
    again = FakeBench()
    outcome = run(tmp_path, again, [gemm(m) for m in (1, 2, 3)])
    assert again.measured == [3]
    assert list(outcome.skipped.values()) == ["the GPU was lost: illegal memory access"]


def test_without_a_reference_nothing_drifts(tmp_path):
    outcome = run(tmp_path, FakeBench(reference=lambda: None), [gemm(m) for m in range(1, 40)])
    assert (outcome.measured, outcome.references) == (39, [])


def test_a_folder_of_another_gpu_or_engine_is_refused(tmp_path):
    run(tmp_path, FakeBench(), [gemm(1)])
    for other in ({"name": "l40s"}, {"engine": "dry-run"}):
        with pytest.raises(InputError, match="holds measurements of h200_sxm under servetwin"):
            Journal(tmp_path, session(**other))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("not json", "line 2: is damaged"),
        ("[]", "line 2: is damaged"),
        ('{"row": {"kernel": "gemm.bf16"}}', "line 2: Field required"),
        ('{"skip": 3, "reason": "x"}', "line 2: is no row, skip or discard"),
        ("{}", "line 2: is no row, skip or discard"),
    ],
)
def test_a_damaged_line_is_named(tmp_path, line, says):
    run(tmp_path, FakeBench(), [gemm(1)])
    path = tmp_path / "rows.jsonl"
    head, row = path.read_text().splitlines()
    path.write_text("\n".join([head, line, row]) + "\n")
    with pytest.raises(InputError, match=says):
        read_journal(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a journal"),
        ("{}\n", "is not a journal"),
        ('{"schema_version": 9, "facts": {}, "engine": "x"}\n', "journal schema 9, this program"),
    ],
)
def test_other_files_are_no_journals(tmp_path, text, says):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        read_journal(path)


def test_two_runs_at_once_do_not_write_one_journal(tmp_path):
    with (
        Journal(tmp_path, session()),
        pytest.raises(InputError, match="another run is writing there"),
    ):
        Journal(tmp_path, session())
    Journal(tmp_path, session()).__exit__(None, None, None)


def test_a_file_of_one_line_that_is_no_journal_stays_as_it_is(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("my notes")
    with pytest.raises(InputError, match="is not a journal"):
        Journal(tmp_path, session())
    assert path.read_text() == "my notes"


def test_a_pipe_is_no_journal(tmp_path):
    os.mkfifo(tmp_path / "rows.jsonl")
    with pytest.raises(InputError, match="is not a file"):
        Journal(tmp_path, session())
