"""Recorded decisions of the unmodified vLLM 0.33.0 scheduler, replayed step by step."""

from pathlib import Path

import pytest

from twin.conformance import replay_file

FOLDER = Path(__file__).parent
RECORDINGS = sorted(FOLDER.glob("vllm_*/*.json*"))
STEPS = {
    "01_ample_chunked_fcfs": 152,
    "02_scarce_preempt_fcfs": 1049,
    "03_shared_prefix_cache": 132,
    "04_scarce_priority": 1181,
    "05_ample_priority": 268,
    "06_no_chunked_prefill": 93,
    "08_long_prefill_threshold": 157,
    "09_max_num_seqs_4": 347,
    "11_reserve_full_isl_off": 1775,
    "12_max_model_len_cap": 195,
    "15_identical_prompts_full_hit": 37,
    "a01_ample_chunked_fcfs": 156,
    "a02_scarce_preempt_fcfs": 1077,
    "a03_shared_prefix_cache": 134,
    "a05_max_num_seqs_4": 357,
    "a06_long_prefill_threshold": 161,
    "a09_early_stop_late_discovery": 94,
    "a11_priority_scarce_prefix_early_stop": 751,
    "a12_max_model_len_cap": 198,
    "a13_idle_gaps": 145,
    "a16_finish_while_preempted_fcfs": 331,
    "a18_length_finish_while_preempted_fcfs": 397,
}


def stem(path: Path) -> str:
    return path.name.split(".")[0]


def test_every_recording_is_here() -> None:
    assert {stem(path) for path in RECORDINGS} == STEPS.keys()


@pytest.mark.parametrize("path", RECORDINGS, ids=stem)
def test_every_step_is_identical(path: Path) -> None:
    report = replay_file(path)
    assert report.first_difference is None
    assert (report.identical, report.steps) == (STEPS[stem(path)],) * 2


@pytest.mark.data
@pytest.mark.parametrize("folder", ["scheduler_oracle", "scheduler_oracle_async"])
def test_recordings_of_the_data_folder(data_dir: Path, folder: str) -> None:
    paths = sorted((data_dir / folder).glob("*.json*"))
    assert paths
    for path in paths:
        assert replay_file(path).first_difference is None
