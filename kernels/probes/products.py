"""Matrix products at awkward sizes: `lda` (leading dimension) and `tile_edge` (rows about a tile).

Axes: `m`, `n`, `k` of the product; `lda` elements between rows of the left operand; `library` 1:
torch.matmul, as engines call it, 0: our own GEMM. float16 in the interpreter, else bfloat16.
"""

from collections.abc import Callable
from importlib import import_module

import torch

from kernels.case import Shape
from kernels.checks import check
from kernels.device import DeviceFacts
from kernels.probes.probe import Probe, ProbeError, crossed, ends_first, must_agree, sizes_of
from kernels.timing import L2State, Timer, Timing

_CHECKED_ROWS = 4
_TOLERANCE = 2e-2
"""Of the largest element; bfloat16 rounds to 8 bits. A wrong stride is wrong by all of it."""
_K = 1024
_TILE = 128


def _measure_lda(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    lda, m, n, k, library = sizes_of(shape, LDA.axes, m=1, n=1, k=1)
    check(lda >= k, f"lda is {lda}; at least k ({k}) is needed")
    return _measure("lda", (m, n, k), lda, bool(library), device, timer)


def _measure_edge(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    m, n, k = sizes_of(shape, TILE_EDGE.axes, m=1, n=1, k=1)
    return _measure("tile_edge", (m, n, k), k, True, device, timer)


def _measure(
    name: str,
    size: tuple[int, int, int],
    lda: int,
    library: bool,
    device: torch.device,
    timer: Timer,
) -> Timing:
    m, n, k = size
    kind = torch.bfloat16 if device.type == "cuda" else torch.float16
    a = torch.randn(m, lda, device=device).to(kind)[:, :k]
    # A weight lies as [n, k], its own rows aligned: only a's leading dimension is asked about.
    b = torch.randn(n, k, device=device).to(kind).T
    out = torch.empty(m, n, dtype=kind, device=device)
    product = _library if library else _ours()
    timing = timer.time(lambda: product(a, b, out), l2=L2State.WARM)
    few = torch.linspace(0, m - 1, min(m, _CHECKED_ROWS), device=device).long()
    must_agree(name, out[few], a[few].float() @ b.float(), _TOLERANCE)
    return timing


Product = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], object]


def _library(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> object:
    return torch.matmul(a, b, out=out)


def _ours() -> Product:
    try:
        matmul = import_module("kernels.gemm.dense").matmul
    except ImportError as error:
        raise ProbeError(f"lda: our own GEMM isn't there ({error})") from None
    return lambda a, b, out: matmul(a, b, out=out)


def _lda_sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    products = [{"m": 4096, "n": 4096, "k": _K}, {"m": 256, "n": 4096, "k": _K}]
    # One of each alignment class first: 16, 2, 4 and 8 bytes.
    leading = (1024, 1025, 1026, 1028, 1032, 1027, 1029, 1030, 1031)
    by_library = crossed(products, lda=leading, library=[1])
    return (*by_library, *crossed(products[:1], lda=leading, library=[0]))


def _edge_sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    rows = [_TILE * tiles + beside for tiles in (1, 2, 4, 8, 16, 32) for beside in (-1, 0, 1)]
    weights = [{"n": 4096, "k": 4096}, {"n": 14336, "k": 4096}]
    return crossed(weights, m=ends_first(rows))


LDA = Probe(
    name="lda",
    axes=("lda", "m", "n", "k", "library"),
    sweep=_lda_sweep,
    small=(
        {"lda": 33, "m": 17, "n": 16, "k": 32, "library": 1},
        {"lda": 40, "m": 17, "n": 16, "k": 32, "library": 0},
    ),
    measure=_measure_lda,
    what="one product",
    box_s=15.0,
)

TILE_EDGE = Probe(
    name="tile_edge",
    axes=("m", "n", "k"),
    sweep=_edge_sweep,
    small=tuple({"m": m, "n": 16, "k": 32} for m in (127, 128, 129)),
    measure=_measure_edge,
    what="one product",
    box_s=15.0,
)
