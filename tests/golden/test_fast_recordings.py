"""Recorded decisions of unmodified schedulers, replayed as the fast engine takes them."""

import gzip
import json
import random
from pathlib import Path

import pytest

from tests.golden.quiet_replays import skipping_replay
from tests.golden.test_pipeline_recordings import RECORDINGS as PIPELINES
from tests.golden.test_pipeline_recordings import Replay as PipelineReplay
from tests.golden.test_pipeline_recordings import stem

FOLDER = Path(__file__).parent
RECORDINGS = sorted([*FOLDER.glob("vllm_*/*.json*"), *FOLDER.glob("sglang/*.json*")])


def at_random(seed):
    rng = random.Random(seed)
    return lambda calls: rng.randint(0, calls)


@pytest.mark.parametrize("path", RECORDINGS, ids=stem)
def test_skipping_all_that_is_quiet_changes_nothing(path):
    assert skipping_replay(path, lambda calls: calls).run() is None


@pytest.mark.parametrize("path", RECORDINGS, ids=stem)
def test_nor_does_skipping_here_and_there(path):
    assert skipping_replay(path, at_random(path.name)).run() is None


@pytest.mark.parametrize("name", ["01_ample_chunked_fcfs", "a13_idle_gaps", "01_ample_sync"])
def test_much_is_quiet(name):
    (path,) = (path for path in RECORDINGS if stem(path) == name)
    replay = skipping_replay(path, lambda calls: calls)
    replay.run()
    assert replay.skipped > 0.25 * len(replay._recording.steps)


def test_a_replay_notices_a_difference():
    (path,) = (path for path in RECORDINGS if stem(path) == "01_ample_sync")
    replay = skipping_replay(path, lambda calls: calls)
    step = next(step for step in replay._recording.steps if step["mode"] == "DECODE")
    step["decode"] = [*step["decode"], "nobody"]
    assert replay.run() is not None


class WithoutSkipping(PipelineReplay):
    def schedule(self):
        assert self.scheduler.quiet_calls() == 0
        return super().schedule()


@pytest.mark.parametrize("path", PIPELINES, ids=stem)
def test_a_pipeline_takes_every_call(path):
    document = json.loads(gzip.decompress(path.read_bytes()))
    assert WithoutSkipping(document).run() == document["log"]
