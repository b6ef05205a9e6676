"""Kernels with a fault put in, and how products of random sizes are judged."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import torch

from kernels.judging import relative_error


def seeded(
    folder: Path, name: str, faults: dict[str, str], instead: dict[str, ModuleType] | None = None
) -> ModuleType:
    """Return a module of `kernels` with each text replaced; each must be there.

    Triton reads a kernel's source from its file, so the changed module is written to `folder`.

    Args:
        instead: modules to import in the place of those named, which were seeded before.
    """
    source = Path(importlib.util.find_spec(name).origin).read_text()
    renames = {
        f"from {old} import": f"from {new.__name__} import" for old, new in (instead or {}).items()
    }
    for old, new in {**faults, **renames}.items():
        assert old in source, f"{name} has no {old!r}"
        source = source.replace(old, new)
    path = folder / f"seeded_{name.replace('.', '_')}_{len(list(folder.iterdir()))}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def product_error(actual: torch.Tensor, expected: torch.Tensor, k: int) -> float:
    """Return the worst relative error over rows of a product of k terms of unit variance.

    A row of few columns may cancel to nearly nothing; it then counts against what such rows hold.
    """
    rows = expected.detach().to("cpu", torch.float64)
    usual = (k * rows.shape[1]) ** 0.5 / 4
    few = rows.norm(dim=-1) < usual
    if not few.any():
        return relative_error(actual, expected)
    away = (actual.detach().to("cpu", torch.float64) - rows)[few].norm(dim=-1) / usual
    others = relative_error(actual.cpu()[~few], rows[~few])
    return max(float(away.nan_to_num(float("inf")).max()), others)
