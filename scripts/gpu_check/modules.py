"""Which modules the steps need, and how a machine without network comes by them."""

import os
import subprocess
import sys
from pathlib import Path

CORE = ("numpy", "pydantic", "yaml", "rich", "typer")
"""What every `twin-calibrate` command loads."""
GPU = ("torch", "triton")
MEASURE = (*CORE, *GPU)
FIT = (*CORE, "scipy", "simpy")
PLOT = (*CORE, "vl_convert", "scipy", "simpy")
VALIDATE = (*CORE, *GPU, "simpy")

# Modules in the order they are looked for, with the start of their wheel's name: what they need
# themselves is listed, since wheels are installed without dependencies.
_WHEELS = {
    "numpy": "numpy",
    "scipy": "scipy",
    "simpy": "simpy",
    "pydantic": "pydantic",
    "pydantic_core": "pydantic_core",
    "annotated_types": "annotated_types",
    "typing_extensions": "typing_extensions",
    "typing_inspection": "typing_inspection",
    "yaml": "pyyaml",
    "rich": "rich",
    "markdown_it": "markdown_it_py",
    "mdurl": "mdurl",
    "pygments": "pygments",
    "typer": "typer",
    "click": "click",
    "shellingham": "shellingham",
    "annotated_doc": "annotated_doc",
    "pyarrow": "pyarrow",
    "vl_convert": "vl_convert_python",
    "torch": "torch",
    "triton": "triton",
}
_FIND = (
    "import importlib.util, sys; "
    "print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])"
)
_SEES = (
    "import importlib.util, sys; importlib.util.find_spec('torch') or sys.exit(0); "
    "import torch; sys.exit(not torch.cuda.is_available())"
)
_INSTALL_LIMIT_S = 60


def environment(out: Path, root: Path) -> dict[str, str]:
    """Return the variables that steps run under."""
    found = dict(os.environ)
    paths = [str(root), str(out / "site"), *filter(None, [found.get("PYTHONPATH")])]
    found["PYTHONPATH"] = os.pathsep.join(paths)
    return found


def provide(out: Path, variables: dict[str, str]) -> list[str]:
    """Install what is missing from `SERVETWIN_WHEELS`, if it names a folder; return the rest."""
    missing = _missing(variables)
    folder = variables.get("SERVETWIN_WHEELS")
    if not missing or not folder:
        return _that_matter(missing)
    wheels = [wheel for name in missing for wheel in _wheels_of(Path(folder), _WHEELS[name])]
    if wheels:
        command = [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
            "--target", str(out / "site"), "--upgrade", *map(str, wheels),
        ]  # fmt: skip
        try:
            subprocess.run(command, env=variables, timeout=_INSTALL_LIMIT_S, check=False)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"wheels could not be installed: {error}", flush=True)
    return _that_matter(_missing(variables))


def lacking(variables: dict[str, str]) -> list[str]:
    """Return modules that steps need, that are missing and that no folder of wheels has."""
    folder = variables.get("SERVETWIN_WHEELS")
    return [
        name
        for name in _that_matter(_missing(variables))
        if not folder or not _wheels_of(Path(folder), _WHEELS[name])
    ]


def sees_gpu(variables: dict[str, str]) -> bool:
    """Whether PyTorch sees a GPU; also true where PyTorch is yet to come from its wheel."""
    told = subprocess.run(  # noqa: S603  our own command
        [sys.executable, "-c", _SEES], env=variables, capture_output=True, check=False
    )
    return told.returncode == 0


def _missing(variables: dict[str, str]) -> list[str]:
    command = [sys.executable, "-c", _FIND, *_WHEELS]
    told = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)  # noqa: S603
    return told.stdout.split()


def _that_matter(missing: list[str]) -> list[str]:
    """Those that a step asks for itself; the rest are only some versions' needs."""
    return [name for name in missing if name in {*MEASURE, *FIT, *PLOT, *VALIDATE}]


def _wheels_of(folder: Path, start: str) -> list[Path]:
    """The newest-named wheel of a distribution; names are spelled in several ways."""
    found = [
        wheel
        for wheel in sorted(folder.glob("*.whl"))
        if wheel.name.split("-")[0].lower().replace(".", "_") == start
    ]
    return found[-1:]
