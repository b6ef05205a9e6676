"""Attention over a KV cache: decode and chunked prefill."""
