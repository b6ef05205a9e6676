"""Runs in the formats of observability tools: Prometheus and Perfetto."""
