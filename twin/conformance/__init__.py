"""Recorded decisions of real engines, replayed through the simulated schedulers."""

from twin.conformance.replay import replay_file
from twin.conformance.report import ConformanceReport, StepDifference, render

__all__ = ["ConformanceReport", "StepDifference", "render", "replay_file"]
