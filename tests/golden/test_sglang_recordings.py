"""Recorded decisions of the unmodified SGLang 0.5.23 scheduler, replayed turn by turn."""

from pathlib import Path

import pytest

from twin.conformance import replay_file

RECORDINGS = sorted((Path(__file__).parent / "sglang").glob("*.json*"))
TURNS = {
    "01_ample_sync": 136,
    "02_ample_overlap": 136,
    "03_scarce_retract_sync": 1395,
    "05_scarce_ignore_eos_overlap": 1417,
    "06_scarce_noradix_ignore_eos": 1283,
    "07_shared_prefix_fcfs_evict": 180,
    "09_burst_fcfs": 237,
    "10_burst_lpm": 234,
    "11_burst_lpm_over128": 234,
    "12_burst_dfs_weight": 227,
    "14_long_chunked": 137,
    "15_mixed_chunk_sync": 124,
    "17_page16_scarce_prefix": 643,
    "19_no_chunk_max_prefill": 77,
    "20_scarce_default_ratio": 4002,
    "22_identical_prompts": 38,
    "23_multi_turn_lfu": 180,
    "25_clip_max_new_tokens": 7075,
    "27_retract_policy_priority": 1685,
    "28_ample_stops_overlap": 134,
    "29_retract_heavy_sync": 2677,
    "32_idle_gaps_ratio_reset": 1376,
    "33_finish_at_full_overlap": 1337,
    "35_tight_admission_ignore_eos": 578,
    "37_slru_evict": 307,
    "39_finish_at_full_tiny": 1585,
}


def stem(path: Path) -> str:
    return path.name.split(".")[0]


def test_every_recording_is_here() -> None:
    assert {stem(path) for path in RECORDINGS} == TURNS.keys()


@pytest.mark.parametrize("path", RECORDINGS, ids=stem)
def test_every_turn_is_identical(path: Path) -> None:
    report = replay_file(path)
    assert report.first_difference is None
    assert (report.identical, report.steps) == (TURNS[stem(path)],) * 2


@pytest.mark.data
def test_recordings_of_the_data_folder(data_dir: Path) -> None:
    paths = sorted((data_dir / "scheduler_oracle_sglang").glob("*.json*"))
    assert paths
    for path in paths:
        assert replay_file(path).first_difference is None
