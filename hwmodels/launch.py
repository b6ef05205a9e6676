"""Launching kernels: a resource of its own, beside the GPU's time."""

from hwmodels.efficiency import LaunchFit


def launch_floor_s(kernels: int, fit: LaunchFit, *, graph: bool) -> float:
    """Return the least seconds a step of that many kernels takes.

    In a CUDA graph the GPU leaves a gap between kernels; eagerly the host pays for every
    operation (44 us on an A100 host, 20 us on Hopper hosts: flat until about 1 MiB of work).
    """
    return kernels * (fit.graph_gap_s if graph else fit.eager_op_s)
