"""`NewTokenRatio`: which share of foreseen output admission reserves for running requests."""

from collections.abc import Sequence

from twin.scheduling.sglang.job import Job
from twin.scheduling.sglang.limits import SglangLimits


class NewTokenRatio:
    """Starts high, falls with every decode step, and is estimated anew after a retraction.

    Attributes:
        init, least, decay: where it starts, where it ends, and by how much a step lowers it.
        now: its present value.
    """

    __slots__ = ("_steps_ahead", "decay", "init", "least", "now")

    def __init__(self, limits: SglangLimits) -> None:
        self.init = min(limits.init_new_token_ratio * limits.schedule_conservativeness, 1.0)
        self.least = min(self.init * limits.min_new_token_ratio_factor, 1.0)
        self.decay = (self.init - self.least) / limits.new_token_ratio_decay_steps
        self.now = self.init
        self._steps_ahead = limits.retract_decode_steps

    def fall(self, steps: int = 1) -> None:
        """Lower it by so many decode steps, one after another."""
        now, decay, least = self.now, self.decay, self.least
        for _ in range(steps):
            if now == least and decay >= 0:  # it rests there
                break
            now = max(now - decay, least)
        self.now = now

    def reset(self) -> None:
        """Start again: the server is idle."""
        self.now = self.init

    def estimate(self, survivors: Sequence[Job]) -> None:
        """Set it to what the survivors of a retraction have generated, and a little more."""
        generated = sum(job.state.num_output for job in survivors)
        most = sum(job.max_new for job in survivors)
        ahead = self._steps_ahead * len(survivors)
        self.now = min(1.0, (generated + ahead) / (most + 1))
