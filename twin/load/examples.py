"""The built-in example scenarios, found by name."""

from pathlib import Path

from twin.errors import InputError
from twin.naming import remedy_for

FOLDER = Path(__file__).resolve().parent.parent / "examples"


def example_names() -> list[str]:
    """Return the names of the built-in scenarios."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def find_scenario(path: str | Path, what: str = "scenario file") -> Path:
    """Return a scenario's file: the built-in example of that name, or `path` itself.

    What happens to lie in the working folder does not change what an example's name means: a file
    or folder of that name is reached by a path, `./chat-h100`.

    Args:
        path: as the user gave it.
        what: how errors call what is missing.
    """
    candidate = Path(path)
    if not str(path).isprintable() or not str(path):
        raise InputError("is not a usable path", where=repr(str(path))[:200])
    names = example_names()
    if str(path) in names and not isinstance(path, Path):
        return FOLDER / f"{path}.yaml"
    try:
        if candidate.exists():
            return candidate
    except (OSError, ValueError) as error:
        raise InputError(f"is not a usable path: {error}", where=repr(str(path))[:200]) from None
    if str(path) in names:
        return FOLDER / f"{path}.yaml"
    looks_like_name = candidate.suffix == "" and candidate.parent == Path(".")
    remedy = remedy_for(str(path), names) if looks_like_name else "check the path"
    raise InputError(f"no such {what}", where=str(path), remedy=remedy)
