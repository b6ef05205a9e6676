"""`HardwareProfile`: measured tables, fitted parameters, held-out errors, provenance.

One file a (GPU, engine version): a NumPy archive (`.npz`, no pickle). Its entry `profile.json`
holds everything but the tables; the others are the tables' columns, named `table/column`.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PROFILE_SCHEMA_VERSION = 1
DRY_RUN = "dry-run"
"""Engine of profiles whose durations nobody measured."""

FOLDER = Path(__file__).resolve().parent / "profiles"
_MAX_BYTES = 64 * 2**20
_DAMAGE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError,
    NotImplementedError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip

Column = NDArray[np.generic]
Table = Mapping[str, Column]
"""Columns of one measured table, all of one length. Times are in the column `seconds`."""

Version = tuple[int, int, int, int]


class ProfileError(ValueError):
    """A profile file that cannot be used; one line."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a profile's figures come from.

    `source` names the data (package, version, files), `licence` its licence; `versions` holds
    what is known of engine, kernels, driver and CUDA; `fitted_on` says what parameters were
    fitted on.
    """

    source: str
    licence: str
    date: str
    versions: Mapping[str, str] = field(default_factory=dict)
    fitted_on: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Error on rows that no fit or table saw, absolute per cent."""

    median_pct: float
    p90_pct: float
    rows: int
    seed: int
    split: str


@dataclass(frozen=True, slots=True)
class HardwareProfile:
    """What is known about one GPU under one engine version.

    Attributes:
        name: file stem, `gpu-engine-version`.
        kind: `kernels` (tables of single kernels) or `layers` (whole layers of one network).
        tables: measured tables by name.
        parameters: fitted numbers by kernel family (plain data).
        held_out: held-out error by kernel family.
        facts: what else the tables need said (plain data), for example the network of a layer
            profile.
    """

    name: str
    gpu: str
    engine: str
    engine_version: str
    kind: str
    provenance: Provenance
    tables: Mapping[str, Table] = field(hash=False)
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    held_out: Mapping[str, HeldOut] = field(default_factory=dict, hash=False)
    facts: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def pretended(self) -> bool:
        """Whether its durations and constants are those of a dry run."""
        return self.engine == DRY_RUN


def write_profile(profile: HardwareProfile) -> bytes:
    """Return a profile as the bytes of its file; equal profiles give equal bytes."""
    header = {
        "schema_version": PROFILE_SCHEMA_VERSION,
        "name": profile.name,
        "gpu": profile.gpu,
        "engine": profile.engine,
        "engine_version": profile.engine_version,
        "kind": profile.kind,
        "provenance": asdict(profile.provenance),
        "parameters": profile.parameters,
        "held_out": {name: asdict(error) for name, error in profile.held_out.items()},
        "facts": profile.facts,
        "tables": {name: list(table) for name, table in profile.tables.items()},
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        _put(archive, "profile.json", json.dumps(header, indent=1).encode())
        for name, table in profile.tables.items():
            for column, values in table.items():
                _put(archive, f"{name}/{column}.npy", _npy(values))
    return buffer.getvalue()


def read_profile(path: Path) -> HardwareProfile:
    """Return the profile in a file, all its tables read and checked.

    Raises:
        ProfileError: it is not a profile of this schema version, or its tables are damaged.
    """
    profile = open_profile(path)
    return replace(profile, tables={name: profile.tables[name] for name in profile.tables})


def open_profile(path: Path) -> HardwareProfile:
    """Return the profile in a file; each table is read when it is first asked for.

    A run touches few tables of a profile, and unpacking all takes longer than such a run.

    Raises:
        ProfileError: it is not a profile of this schema version. A damaged table raises it when
            it is asked for.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(entry.file_size for entry in archive.infolist()) > _MAX_BYTES:
                raise ProfileError(f"{path}: unpacks to more than {_MAX_BYTES // 2**20} MiB")
            header = json.loads(archive.read("profile.json"))
            _check_version(path, header)
            tables = _StoredTables(path, header["tables"])
        return HardwareProfile(
            name=header["name"],
            gpu=header["gpu"],
            engine=header["engine"],
            engine_version=header["engine_version"],
            kind=header["kind"],
            provenance=Provenance(
                **{**header["provenance"], "notes": tuple(header["provenance"]["notes"])}
            ),
            tables=tables,
            parameters=header["parameters"],
            held_out={name: HeldOut(**error) for name, error in header["held_out"].items()},
            facts=header["facts"],
        )
    except ProfileError:
        raise
    except FileNotFoundError:
        raise ProfileError(f"{path}: no such profile") from None
    except _DAMAGE as error:
        raise ProfileError(f"{path}: is not a hardware profile ({error})") from None


class _StoredTables(Mapping[str, Table]):
    """The tables of a profile file, each unpacked once and on demand."""

    def __init__(self, path: Path, columns: Mapping[str, list[str]]) -> None:
        self._path, self._columns = path, dict(columns)
        self._read: dict[str, Table] = {}

    def __getitem__(self, name: str) -> Table:
        table = self._read.get(name)
        if table is None:
            columns = self._columns[name]
            try:
                with zipfile.ZipFile(self._path) as archive:
                    table = self._read[name] = _table(archive, name, columns)
            except ProfileError:
                raise
            except _DAMAGE as error:
                raise ProfileError(f"{self._path}: table {name} is damaged ({error})") from None
        return table

    def num_rows(self) -> int:
        """Return how many rows all tables have; their values stay packed."""
        found = 0
        with zipfile.ZipFile(self._path) as archive:
            for name, columns in self._columns.items():
                with archive.open(f"{name}/{columns[0]}.npy") as file:
                    np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
                    header = np.lib.format.read_array_header_1_0(file)  # type: ignore[no-untyped-call]
                    found += header[0][0]
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __contains__(self, name: object) -> bool:
        return name in self._columns


def measured_points(profile: HardwareProfile) -> int:
    """Return how many rows all tables of a profile have; `ProfileError`: its file is damaged."""
    tables = profile.tables
    if not isinstance(tables, _StoredTables):
        return sum(max(map(len, table.values())) for table in tables.values())
    try:
        return tables.num_rows()
    except _DAMAGE as error:
        raise ProfileError(f"{profile.name}: a table is damaged ({error})") from None


def shipped_profiles() -> dict[str, Path]:
    """Return the profiles that come with the program, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}


def profile_name(gpu: str, engine: str, engine_version: str) -> str:
    """Return the name, and file stem, of a profile."""
    return f"{gpu}-{engine}-{engine_version}"


def find_shipped(gpu: str, engine: str, engine_version: str | None = None) -> Path | None:
    """Return the shipped kernel profile nearest to a version, the newest without one.

    Near is by release number, the first part that differs deciding; of two equally near ones the
    newer is taken. None if no profile of that GPU and engine is shipped.
    """
    prefix = profile_name(gpu, engine, "")
    found = {
        version_numbers(name.removeprefix(prefix)): path
        for name, path in shipped_profiles().items()
        if name.startswith(prefix) and open_profile(path).kind == "kernels"
    }
    if not found:
        return None
    if not engine_version:
        return found[max(found)]
    return found[nearest_version(version_numbers(engine_version), found)]


def version_numbers(version: str) -> Version:
    """Return a version's first four numbers: (1, 3, 0, 20) for `1.3.0rc20`."""
    numbers = [int(part) for part in re.findall(r"\d+", version)[:4]]
    numbers += [0] * (4 - len(numbers))
    return numbers[0], numbers[1], numbers[2], numbers[3]


def nearest_version(wanted: Version, known: Iterable[Version]) -> Version:
    """Return the version nearest to `wanted`; of two equally near ones the newer."""

    def distance(version: Version) -> tuple[int, ...]:
        return tuple(abs(a - b) for a, b in zip(version, wanted, strict=True))

    return min(sorted(known, reverse=True), key=distance)


def _check_version(path: Path, header: Mapping[str, Any]) -> None:
    version = header.get("schema_version")
    if version != PROFILE_SCHEMA_VERSION:
        raise ProfileError(
            f"{path}: profile schema {version!r}, this program reads {PROFILE_SCHEMA_VERSION}"
        )


def _table(archive: zipfile.ZipFile, name: str, columns: list[str]) -> Table:
    table = {}
    for column in columns:
        with archive.open(f"{name}/{column}.npy") as file:
            table[column] = np.load(io.BytesIO(file.read()), allow_pickle=False)
    if len({values.shape for values in table.values()}) > 1:
        raise ProfileError(f"table {name}: columns of different lengths")
    return table


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # A fixed time stamp, so that equal profiles are equal files.
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)


def _npy(values: Column) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(values), allow_pickle=False)
    return buffer.getvalue()
