"""How far a kernel's output lies from its oracle."""

import math

import torch

from kernels.case import Case

_TINY = 1e-30


def relative_error(actual: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the worst relative L2 error over rows (vectors along the last axis).

    Rows, so that one wrong sequence or head isn't drowned by many right ones. A row whose oracle
    is all zero counts by its absolute norm. NaN or infinity where the oracle has none: infinity.
    """
    if actual.shape != expected.shape:
        return math.inf
    if actual.numel() == 0:
        return 0.0
    have = actual.detach().to("cpu", torch.float64).reshape(-1, actual.shape[-1] or 1)
    want = expected.detach().to("cpu", torch.float64).reshape(have.shape)
    norms = want.norm(dim=-1)
    errors = (have - want).norm(dim=-1) / torch.where(norms > _TINY, norms, torch.ones_like(norms))
    worst = float(errors.max())
    return worst if math.isfinite(worst) else math.inf


def case_error(case: Case) -> float:
    """Launch a case and return the worst relative error of its outputs."""
    case.launch()
    expected = case.oracle()
    return max(
        relative_error(actual, wanted)
        for actual, wanted in zip(case.outputs, expected, strict=True)
    )
