"""`StorageTier`: what reading and writing KV blocks on one disk costs, measured and fitted.

One JSON file a disk. A block of `bytes` in `fragments` contiguous pieces takes

    seconds = alpha_s + fragments * per_fragment_s + bytes / bytes_per_s

with parameters of their own for each direction, mode of I/O and queue depth: typical (median)
seconds of one block while so many are in flight. Modes: of reads `direct` (O_DIRECT), `buffered`
(through a page cache that holds nothing of the file), `cached` (out of it); of writes `direct`,
`buffered` (into the page cache, nobody waits for the disk), `synced` (with fdatasync).
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

TIER_SCHEMA_VERSION = 1
FOLDER = Path(__file__).resolve().parent / "tiers"
IO_MODES = {
    "read": ("direct", "buffered", "cached"),
    "write": ("direct", "buffered", "synced"),
}
_MAX_BYTES = 8 * 2**20
_MAY_BE_ZERO = {"alpha_s", "per_fragment_s", "median_pct", "p90_pct"}

T = TypeVar("T")


class TierError(ValueError):
    """A tier file that cannot be used, or a question that it cannot answer; one line."""


@dataclass(frozen=True, slots=True)
class TierLine:
    """Fitted parameters of one direction, mode and queue depth.

    Attributes:
        per_fragment_s: None: blocks were only measured whole.
        mean_over_median, p99_over_mean: of the seconds of one block, the middle over rows: how
            uneven they are.
        rows: that it was fitted to.
    """

    direction: str
    io_mode: str
    queue_depth: int
    alpha_s: float
    per_fragment_s: float | None
    bytes_per_s: float
    mean_over_median: float
    p99_over_mean: float
    rows: int

    def seconds(self, num_bytes: float, fragments: int = 1) -> float:
        """Return the typical seconds of one block at this queue depth.

        Raises:
            TierError: several fragments, which weren't measured.
        """
        per_fragment_s = self.per_fragment_s
        if per_fragment_s is None:
            if fragments != 1:
                raise TierError(f"{self.direction} {self.io_mode}: no fragments were measured")
            per_fragment_s = 0.0
        return self.alpha_s + fragments * per_fragment_s + num_bytes / self.bytes_per_s


@dataclass(frozen=True, slots=True)
class TierRow:
    """One measured point: seconds of one block, and bytes/s of all in flight together."""

    direction: str
    io_mode: str
    queue_depth: int
    block_bytes: int
    fragments: int
    operations: int
    seconds_mean: float
    seconds_median: float
    seconds_p90: float
    seconds_p99: float
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class TierHeldOut:
    """Error of the form on block sizes that its fit did not see, absolute per cent."""

    direction: str
    io_mode: str
    median_pct: float
    p90_pct: float
    rows: int
    split: str


@dataclass(frozen=True, slots=True)
class TierProvenance:
    """Where a tier's figures come from.

    Attributes:
        device, file_system: of the folder that was measured.
        kernel: version of the operating system's.
        note: what else a reader must know, for example that other programs ran.
    """

    device: str
    file_system: str
    kernel: str
    date: str
    note: str


@dataclass(frozen=True, slots=True)
class DirectIoFacts:
    """What the file system says to O_DIRECT.

    Attributes:
        problem: why there is none; empty: there is.
        least_bytes: least alignment accepted of `buffer`, `offset` and `length`.
        refused: combinations, of eight, that were refused: what of them was misaligned, and the
            error's name, for example `offset+length: EINVAL`.
    """

    problem: str
    least_bytes: Mapping[str, int] = field(default_factory=dict, hash=False)
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StorageTier:
    """What is known about one disk as a place for KV blocks."""

    name: str
    provenance: TierProvenance
    direct_io: DirectIoFacts
    lines: tuple[TierLine, ...]
    held_out: tuple[TierHeldOut, ...]
    rows: tuple[TierRow, ...]

    def seconds(
        self,
        direction: str,
        io_mode: str,
        num_bytes: float,
        *,
        fragments: int = 1,
        queue_depth: int = 1,
    ) -> float:
        """Return the typical seconds of one block while `queue_depth` are in flight.

        Between measured depths seconds follow a power of the depth. Beyond the largest they grow
        in proportion to it, as on a disk that can do no more.

        Raises:
            TierError: a direction, mode or fragments that were not measured, or a depth below
                the least that was.
        """
        depths = {
            line.queue_depth: line
            for line in self.lines
            if (line.direction, line.io_mode) == (direction, io_mode)
        }
        if not depths:
            measured = sorted({f"{line.direction} {line.io_mode}" for line in self.lines})
            raise TierError(
                f"{self.name}: {direction} {io_mode} was not measured; {', '.join(measured)} were"
            )
        if queue_depth < min(depths):
            raise TierError(
                f"{self.name}: queue depth {queue_depth} is below {min(depths)}, the least measured"
            )
        found = {n: line.seconds(num_bytes, fragments) for n, line in sorted(depths.items())}
        if queue_depth >= max(found):
            return found[max(found)] * queue_depth / max(found)
        low, high = next(pair for pair in pairwise(found) if pair[0] <= queue_depth < pair[1])
        share = math.log(queue_depth / low) / math.log(high / low)
        return float(found[low] ** (1 - share) * found[high] ** share)


def write_tier(tier: StorageTier) -> str:
    """Return a tier as the text of its file; equal tiers give equal texts."""
    data = {"schema_version": TIER_SCHEMA_VERSION, **asdict(tier)}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def read_tier(path: Path) -> StorageTier:
    """Return the tier in a file.

    Raises:
        TierError: it is not a tier of this schema version; it names the file and the key.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise TierError(f"larger than {_MAX_BYTES // 2**20} MiB")
        data = json.loads(path.read_text(encoding="utf-8"))
        return _tier(data)
    except FileNotFoundError:
        raise TierError(f"{path}: no such storage tier") from None
    except TierError as error:
        raise TierError(f"{path}: {error}") from None
    except (OSError, ValueError, OverflowError, RecursionError) as error:
        raise TierError(f"{path}: is not a storage tier ({' '.join(str(error).split())})") from None


def shipped_tiers() -> dict[str, Path]:
    """Return the files of the shipped tiers by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.json"))}


def _tier(data: Any) -> StorageTier:
    if not isinstance(data, dict):
        raise TierError("is not a storage tier (no JSON object)")
    version = data.get("schema_version")
    if version != TIER_SCHEMA_VERSION:
        raise TierError(f"tier schema {version!r}, this program reads {TIER_SCHEMA_VERSION}")
    given = {key: value for key, value in data.items() if key != "schema_version"}
    _check_keys(StorageTier, given, "")
    if not isinstance(given["name"], str) or not given["name"]:
        raise TierError(f"name is {given['name']!r}; a text is needed")
    tier = StorageTier(
        name=given["name"],
        provenance=_one(TierProvenance, given["provenance"], "provenance"),
        direct_io=_direct_io(given["direct_io"]),
        lines=_many(TierLine, given["lines"], "lines"),
        held_out=_many(TierHeldOut, given["held_out"], "held_out"),
        rows=_many(TierRow, given["rows"], "rows"),
    )
    if not tier.lines:
        raise TierError("lines is empty; a tier has at least one")
    keys = [(line.direction, line.io_mode, line.queue_depth) for line in tier.lines]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise TierError(f"lines has {' '.join(map(str, twice))} twice")
    return tier


def _direct_io(data: Any) -> DirectIoFacts:
    _check_keys(DirectIoFacts, data, "direct_io")
    least, refused = data["least_bytes"], data["refused"]
    if not isinstance(data["problem"], str):
        raise TierError(f"direct_io.problem is {data['problem']!r}; a text is needed")
    if not isinstance(least, dict) or not all(type(size) is int for size in least.values()):
        raise TierError("direct_io.least_bytes must map axes to bytes")
    if not isinstance(refused, list) or not all(isinstance(text, str) for text in refused):
        raise TierError("direct_io.refused must be a list of texts")
    return DirectIoFacts(data["problem"], least, tuple(refused))


def _many(kind: type[T], data: Any, where: str) -> tuple[T, ...]:
    if not isinstance(data, list):
        raise TierError(f"{where} is no list")
    return tuple(_one(kind, one, f"{where}[{number}]") for number, one in enumerate(data))


def _one(kind: type[T], data: Any, where: str) -> T:
    _check_keys(kind, data, where)
    for key, value in data.items():
        _check_value(_type_of(kind, key), key, value, f"{where}.{key}")
    if "io_mode" in data and data["io_mode"] not in IO_MODES.get(data["direction"], ()):
        raise TierError(f"{where}: unknown {data['direction']!r} mode {data['io_mode']!r}")
    return kind(**data)


def _check_keys(kind: type[Any], data: Any, where: str) -> None:
    if not isinstance(data, dict):
        raise TierError(f"{where} is no object")
    wanted = {one.name for one in fields(kind)}
    prefix = f"{where}: " if where else ""
    if wanted - set(data):
        raise TierError(f"{prefix}lacks {', '.join(sorted(wanted - set(data)))}")
    if set(data) - wanted:
        raise TierError(f"{prefix}unknown key {', '.join(sorted(set(data) - wanted))}")


def _type_of(kind: type[Any], key: str) -> Any:
    return next(one.type for one in fields(kind) if one.name == key)


def _check_value(wanted: Any, key: str, value: Any, where: str) -> None:
    if wanted is str:
        if not isinstance(value, str):
            raise TierError(f"{where} is {value!r}; a text is needed")
        return
    if value is None and wanted not in (int, float):
        return
    number = type(value) in ((int,) if wanted is int else (int, float))
    if (
        not number
        or not math.isfinite(value)
        or value < 0
        or (not value and key not in _MAY_BE_ZERO)
    ):
        raise TierError(f"{where} is {value!r}; a positive number is needed")
