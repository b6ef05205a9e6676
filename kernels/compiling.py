"""Compile kernels for a GPU that isn't there, and say what they take of it.

`python -m kernels.compiling --capability 90` compiles every kernel of the catalogue; it must run
without `TRITON_INTERPRET`. Exit code 1 if a kernel fails to compile, spills, or takes more shared
memory than a block of that part may have.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from kernels.needed import check_modules

if __name__ == "__main__":  # before the imports that would end in a traceback
    check_modules("python -m kernels.compiling")

from kernels.case import CompileSpec, Kernel

SHARED_BYTES_PER_BLOCK = {80: 163 * 1024, 90: 227 * 1024}
"""Most shared memory of a thread block: CUDA C++ programming guide, compute capabilities."""

MAX_REGISTERS = 255


@dataclass(frozen=True, slots=True)
class Resources:
    """What one specialisation takes of a multiprocessor.

    Attributes:
        spill_bytes: of each thread in local memory, stack frames included.
    """

    kernel: str
    label: str
    capability: int
    registers: int = 0
    shared_bytes: int = 0
    spill_bytes: int = 0
    problem: str = ""


def compile_spec(kernel: str, spec: CompileSpec, capability: int) -> Resources:
    """Compile one specialisation and return what it takes; `problem` says what is wrong."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    head = (kernel, spec.label, capability)
    try:
        compiled = triton.compile(
            ASTSource(
                fn=spec.function,
                signature=_signature(spec),
                constexprs=dict(spec.constexprs),
                attrs=_hints(spec),
            ),
            target=GPUTarget("cuda", capability, 32),
            options={"num_warps": spec.num_warps, "num_stages": spec.num_stages},
        )
    except Exception as error:
        return Resources(*head, problem=f"does not compile: {_first_line(error)}")
    registers, spill_bytes = _usage(compiled.asm["cubin"])
    shared_bytes = int(compiled.metadata.shared)
    limit = SHARED_BYTES_PER_BLOCK[capability]
    problem = ""
    if shared_bytes > limit:
        problem = f"takes {shared_bytes} bytes of shared memory; a block has {limit}"
    elif spill_bytes:
        problem = f"spills {spill_bytes} bytes a thread"
    return Resources(*head, registers, shared_bytes, spill_bytes, problem)


def compile_all(kernels: Iterable[Kernel], capability: int) -> Iterator[Resources]:
    """Compile every specialisation of some kernels."""
    for kernel in kernels:
        for spec in kernel.compile_specs(capability):
            yield compile_spec(kernel.name, spec, capability)


def _signature(spec: CompileSpec) -> dict[str, str]:
    names = spec.function.arg_names
    unknown = [name for name in names if name not in spec.signature and name not in spec.constexprs]
    if unknown:
        raise ValueError(f"{spec.label}: no type given for {', '.join(unknown)}")
    return {name: spec.signature.get(name, "constexpr") for name in names}


def _hints(spec: CompileSpec) -> dict[tuple[int, ...], list[list[object]]]:
    names = spec.function.arg_names
    return {(names.index(name),): [["tt.divisibility", 16]] for name in sorted(spec.aligned)}


def _usage(cubin: bytes) -> tuple[int, int]:
    """Return (registers a thread, bytes a thread in local memory) of a compiled kernel."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    found = {key: [int(n) for n in re.findall(rf"\b{key}:(\d+)", text)] for key in _FIELDS}
    return max(found["REG"]), max(found["STACK"]) + max(found["LOCAL"])


_FIELDS = ("REG", "STACK", "LOCAL")


def _first_line(error: BaseException) -> str:
    """Return what is wrong in one line: the innermost cause, without the source around it."""
    while error.__cause__ is not None:
        error = error.__cause__
    text = getattr(error, "error_message", None) or str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^\t")]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def main() -> int:
    """Compile the catalogue for one capability; print rows, or JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m kernels.compiling",
        description="Compile every kernel for a GPU that need not be there, and say what each "
        "takes: registers a thread, shared memory, spills. Exit code 1 if one doesn't compile, "
        "spills, or takes more shared memory than a block may have.",
    )
    parser.add_argument(
        "--capability",
        type=int,
        choices=sorted(SHARED_BYTES_PER_BLOCK),
        default=90,
        help="80: A100, 90: H100 and H200 (the default)",
    )
    parser.add_argument("--kernel", action="append", help="only this one; may be repeated")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    chosen = parser.parse_args()
    from kernels.catalogue import KERNELS

    unknown = sorted(set(chosen.kernel or ()) - set(KERNELS))
    if unknown:
        parser.error(f"unknown kernel {', '.join(unknown)}; known are {', '.join(sorted(KERNELS))}")
    kernels = [KERNELS[name] for name in chosen.kernel or KERNELS]
    rows = []
    for row in compile_all(kernels, chosen.capability):
        rows.append(row)
        print(json.dumps(asdict(row)) if chosen.json else _line(row), flush=True)
    if not chosen.json:
        print(_summary(rows, chosen.capability))
    return 1 if any(row.problem for row in rows) else 0


def _summary(rows: Sequence[Resources], capability: int) -> str:
    compiled = [row for row in rows if row.registers]
    text = f"{len(compiled)} of {len(rows)} compiled for sm_{capability}"
    text += f", {sum(row.spill_bytes > 0 for row in compiled)} spill"
    if compiled:
        largest = max(compiled, key=lambda row: row.shared_bytes)
        text += (
            f", largest shared memory {largest.shared_bytes:,} B of "
            f"{SHARED_BYTES_PER_BLOCK[capability]:,} ({largest.kernel} {largest.label})"
        )
    return text


def _line(row: Resources) -> str:
    taken = f"{row.registers:4d} registers {row.shared_bytes:7d} B shared"
    taken += f" {row.spill_bytes:4d} B spilled"
    return f"sm_{row.capability} {row.kernel:24s} {row.label:36s} {taken}  {row.problem or 'ok'}"


if __name__ == "__main__":
    sys.exit(main())
