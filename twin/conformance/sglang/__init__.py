"""Recordings of SGLang: schema 1, the normal and the overlapping loop."""

from twin.conformance.sglang.replay import replay_sglang

__all__ = ["replay_sglang"]
