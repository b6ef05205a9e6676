"""Check every kernel against its oracle, on a GPU or in Triton's interpreter.

`python -m kernels.checking` takes fresh random inputs at each run (the seed is printed) and
poisons every output before its kernel runs. Exit code 1 if a case fails.
"""

import argparse
import json
import os
import secrets
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from kernels.needed import check_modules

if __name__ == "__main__":  # before the imports that would end in a traceback
    check_modules("python -m kernels.checking")

import torch

from kernels.case import Kernel, Shape
from kernels.judging import case_error

FP8_CAPABILITY = 89
"""Parts from here on have fp8 instructions (CUDA C++ programming guide, compute capabilities)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case.

    Attributes:
        shape: sizes by axis; empty where a whole dtype was skipped.
        error: the worst relative error of any output; None: none was found.
        status: "ok", "FAIL" or "skip".
        reason: of a skip, or of a failure that has no error.
    """

    kernel: str
    dtype: str
    shape: dict[str, int]
    seed: int
    status: str
    error: float | None = None
    tolerance: float | None = None
    reason: str = ""


def skip_reason(kernel: Kernel, dtype: str, capability: int | None) -> str:
    """Return why a dtype cannot be checked here; empty if it can.

    Args:
        capability: of the GPU, as 90 for 9.0; None: the interpreter.
    """
    if capability is None:
        if dtype in kernel.interpreted:
            return ""
        return f"Triton's interpreter does not compute {dtype} rightly; it needs a GPU"
    if dtype == "fp8" and capability < FP8_CAPABILITY:
        return f"fp8 needs capability {FP8_CAPABILITY} or later; this GPU has {capability}"
    return ""


def check_kernels(
    kernels: Iterable[Kernel], device: torch.device, capability: int | None, seed: int
) -> Iterator[Outcome]:
    """Run each case at each dtype and shape; a seed of its own for each, from `seed` on."""
    for kernel in kernels:
        for dtype in kernel.dtypes:
            reason = skip_reason(kernel, dtype, capability)
            if reason:
                yield Outcome(kernel.name, dtype, {}, seed, "skip", reason=reason)
                continue
            for shape in kernel.shapes:
                yield _outcome(kernel, shape, dtype, device, seed)
                seed += 1


def _outcome(kernel: Kernel, shape: Shape, dtype: str, device: torch.device, seed: int) -> Outcome:
    head = (kernel.name, dtype, dict(shape), seed)
    try:
        case = kernel.make_case(shape, dtype, device, seed)
        error = case_error(case)
    except Exception as problem:  # a kernel that fails to launch must not hide the rest
        lines = str(problem).strip().splitlines() or [""]
        return Outcome(*head, "FAIL", reason=f"{type(problem).__name__}: {lines[0]}")
    status = "ok" if error <= case.tolerance else "FAIL"
    return Outcome(*head, status, error, case.tolerance)


def _line(outcome: Outcome) -> str:
    sizes = " ".join(f"{axis}={size}" for axis, size in outcome.shape.items())
    head = f"{outcome.status:4s} {outcome.kernel:24s} {outcome.dtype:9s} {sizes:44s}"
    if outcome.error is None:
        return f"{head} {outcome.reason}"
    verdict = f"error {outcome.error:.2e} of {outcome.tolerance:.0e}"
    return f"{head} {verdict}" + (f"  seed {outcome.seed}" if outcome.status == "FAIL" else "")


def _row(outcome: Outcome) -> str:
    row = asdict(outcome)
    if outcome.error == float("inf"):  # JSON has no infinity
        row |= {"error": None, "reason": "not finite, or of a wrong shape"}
    return json.dumps(row)


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kernels.checking",
        description="Check every kernel against its oracle, on a GPU or in Triton's interpreter.",
    )
    parser.add_argument("--seed", type=int, help="of the inputs; without it a fresh one")
    parser.add_argument("--kernel", action="append", help="only this one; may be repeated")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Check the catalogue; print a line a case and a summary. Return the exit code."""
    parser = _arguments()
    chosen = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        # Triton decides when a kernel is defined: so before the catalogue is imported.
        os.environ["TRITON_INTERPRET"] = "1"
    from kernels.catalogue import KERNELS

    unknown = sorted(set(chosen.kernel or ()) - set(KERNELS))
    if unknown:
        parser.error(f"unknown kernel {', '.join(unknown)}; known are {', '.join(sorted(KERNELS))}")
    seed = secrets.randbelow(2**31) if chosen.seed is None else chosen.seed
    device, capability, place = _place()
    kernels = [KERNELS[name] for name in chosen.kernel or KERNELS]
    counts = dict.fromkeys(("ok", "FAIL", "skip"), 0)
    for outcome in check_kernels(kernels, device, capability, seed):
        counts[outcome.status] += 1
        print(_row(outcome) if chosen.json else _line(outcome), flush=True)
    summary = {"ok": counts["ok"], "failed": counts["FAIL"], "skipped": counts["skip"]}
    if chosen.json:
        print(json.dumps({"summary": summary, "place": place, "seed": seed}))
    else:
        words = ", ".join(f"{number} {word}" for word, number in summary.items())
        print(f"{words} on {place}, seed {seed}")
    return 1 if counts["FAIL"] else 0


def _place() -> tuple[torch.device, int | None, str]:
    """Return (device, capability or None, what to call it)."""
    if not torch.cuda.is_available():
        return torch.device("cpu"), None, "Triton's interpreter"
    device = torch.device("cuda", torch.cuda.current_device())
    major, minor = torch.cuda.get_device_capability(device)
    return device, 10 * major + minor, torch.cuda.get_device_name(device)


if __name__ == "__main__":
    sys.exit(main())
