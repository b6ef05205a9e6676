"""Recordings of vLLM V1: schema 1 synchronous, schema 2 asynchronous."""

from twin.conformance.vllm.replay import replay_vllm

__all__ = ["replay_vllm"]
