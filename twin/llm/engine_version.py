"""Engine versions as people write them, and what memory budget each version takes by default."""

import re

from twin.errors import InputError

Version = tuple[int, int, int]

ENGINES = ("vllm", "sglang", "trtllm")

# First upload of each vLLM minor release to PyPI (upload times of its index), for versions that
# are only given as a month.
_VLLM_MONTHS: tuple[tuple[tuple[int, int], Version], ...] = (
    ((2023, 9), (0, 2, 0)), ((2024, 1), (0, 3, 0)), ((2024, 3), (0, 4, 0)), ((2024, 6), (0, 5, 0)),
    ((2024, 9), (0, 6, 0)), ((2025, 1), (0, 7, 0)), ((2025, 3), (0, 8, 0)), ((2025, 5), (0, 9, 0)),
    ((2025, 7), (0, 10, 0)), ((2025, 10), (0, 11, 0)), ((2025, 12), (0, 12, 0)),
    ((2026, 1), (0, 14, 0)), ((2026, 2), (0, 16, 0)), ((2026, 3), (0, 17, 0)),
    ((2026, 4), (0, 19, 0)), ((2026, 5), (0, 21, 0)), ((2026, 6), (0, 23, 0)),
    ((2026, 7), (0, 25, 0)), ((2026, 8), (0, 27, 0)), ((2026, 9), (0, 29, 0)),
    ((2026, 10), (0, 31, 0)), ((2026, 11), (0, 33, 0)),
)  # fmt: skip
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBERED = re.compile(r"(?<![\d.])v?(\d{1,9})\.(\d{1,9})(?:\.(\d{1,9}|x))?", re.IGNORECASE)
_DATED = re.compile(r"\b(" + "|".join(_MONTHS) + r")[a-z]*[-\s]*(20\d\d)", re.IGNORECASE)

# vLLM's default rose from 0.9 with release 0.20.0 (`vllm/config/cache.py` of the 0.20.0 and 0.33.0
# source distributions; a recorded 0.19.0 run resolved to 0.9).
_FIRST_WITH_092: Version = (0, 20, 0)


def parse_version(text: str | None) -> Version | None:
    """Return (major, minor, patch) read out of free text; None when it names no version.

    Understands "0.15.1", "vLLM 0.15.1", "0.15.1 fork", "v0.15.1+fork", "~0.9.x", "1.0rc" and
    months such as "V1 Jan-2025" (the vLLM release that was new then).
    """
    if not text:
        return None
    numbered = _NUMBERED.search(text)
    if numbered:
        patch = numbered.group(3)
        return (
            int(numbered.group(1)),
            int(numbered.group(2)),
            int(patch) if patch and patch.isdigit() else 0,
        )
    dated = _DATED.search(text)
    if dated:
        month = (int(dated.group(2)), _MONTHS.index(dated.group(1)[:3].lower()) + 1)
        released = [version for since, version in _VLLM_MONTHS if since <= month]
        return released[-1] if released else None
    return None


def check_version(text: str, where: str) -> None:
    """Refuse what names no version.

    Raises:
        InputError: it names none.
    """
    if parse_version(text) is None:
        raise InputError(
            f"engine version {text!r} is not a version",
            where=where,
            remedy="write for example 0.33.0",
        )


def engine_of(text: str) -> str:
    """Return vllm, sglang or trtllm for an engine name in free text.

    Raises:
        InputError: none of the three.
    """
    plain = re.sub(r"[^a-z]", "", text.lower())
    for name, spellings in {
        "sglang": ("sglang",),
        "trtllm": ("trtllm", "tensorrt"),
        "vllm": ("vllm",),
    }.items():
        if any(spelling in plain for spelling in spellings):
            return name
    raise InputError(f"unknown engine {text!r}", remedy="choose one of " + ", ".join(ENGINES))


def default_gpu_memory_utilization(
    engine: str = "vllm",
    version: str | None = None,
    total_memory_bytes: int = 80 * 2**30,
    num_ranks: int = 1,
) -> float:
    """Return the share of GPU memory an engine takes when the operator says nothing.

    vLLM: `gpu_memory_utilization`, of all memory: 0.92 from 0.20.0 on, 0.9 before.
    TensorRT-LLM: `free_gpu_memory_fraction`, of what is free after loading: 0.9.
    SGLang: `mem_fraction_static`, reckoned from memory and `num_ranks` (tp × pp).
    """
    if engine == "trtllm":
        return 0.9
    if engine == "sglang":
        return _sglang_static_fraction(total_memory_bytes, num_ranks)
    if engine != "vllm":
        raise InputError(f"unknown engine {engine!r}", remedy="choose one of " + ", ".join(ENGINES))
    parsed = parse_version(version)
    return 0.92 if parsed is None or parsed >= _FIRST_WITH_092 else 0.9


def _sglang_static_fraction(total_memory_bytes: int, num_ranks: int) -> float:
    """SGLang 0.5.23's rule for GPUs above 60 GB; smaller ones get its values for 24 and 48 GB.

    It reserves, in MiB, 512 + 1.5 × chunk (8192) + 128 a rank + 2 × largest decode graph (256)
    + 8 × prefill graph sizes (53).
    """
    memory_mib = total_memory_bytes / 2**20
    if memory_mib < 30_000:
        return 0.684
    if memory_mib < 60_000:
        return 0.843
    reserve_mib = max(10_240.0, 512 + 1.5 * 8192 + 128 * num_ranks + 2 * 256 + 8 * 53)
    return round((memory_mib - reserve_mib) / memory_mib, 3)
