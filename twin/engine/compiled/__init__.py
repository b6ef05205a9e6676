"""vLLM's scheduler and the engine loop around it over flat arrays, compiled by numba.

The same decisions as `twin.scheduling` and the same instants as `twin.engine.replica`, for
deployments of one GPU stage timed by operations. The plain engine stays the oracle.
"""
