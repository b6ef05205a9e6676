"""Triton kernels and memory-hierarchy probes: what `calibrate` runs on a GPU."""
