import json
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from measured_profile import profile

from hwmodels.profile import (
    HeldOut,
    ProfileError,
    find_shipped,
    nearest_version,
    open_profile,
    read_profile,
    version_numbers,
    write_profile,
)


def written(path: Path, **more: object) -> Path:
    path.write_bytes(write_profile(profile(**more)))
    return path


def test_a_profile_survives_its_file(tmp_path: Path) -> None:
    errors = {"gemm": HeldOut(2.5, 9.0, 100, 1, "random rows")}
    before = profile(held_out=errors)
    after = read_profile(written(tmp_path / "p.npz", held_out=errors))
    assert after.held_out == errors
    assert after.parameters == before.parameters
    assert after.provenance == before.provenance
    assert list(after.tables) == list(before.tables)
    for name, table in before.tables.items():
        for column, values in table.items():
            np.testing.assert_array_equal(after.tables[name][column], values)


def test_equal_profiles_are_equal_files() -> None:
    assert write_profile(profile()) == write_profile(profile())


def test_opening_reads_no_table_until_asked(tmp_path: Path) -> None:
    path = written(tmp_path / "p.npz")
    opened = open_profile(path)
    assert len(opened.tables) == 6
    assert "gemm.bf16" in opened.tables
    path.unlink()
    with pytest.raises(ProfileError, match=r"gemm\.bf16 is damaged"):
        opened.tables["gemm.bf16"]


def test_a_table_is_read_once(tmp_path: Path) -> None:
    path = written(tmp_path / "p.npz")
    tables = open_profile(path).tables
    first = tables["gemm.bf16"]
    path.unlink()
    assert tables["gemm.bf16"] is first


def test_a_damaged_table_is_found_when_it_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "p.npz")
    spoiled = tmp_path / "q.npz"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(spoiled, "w") as new:
        for entry in old.namelist():
            data = old.read(entry)
            new.writestr(entry, data[:20] if entry == "gemm.bf16/seconds.npy" else data)
    assert open_profile(spoiled).name == "h100_sxm-vllm-0.0.1"
    with pytest.raises(ProfileError, match=r"gemm\.bf16"):
        read_profile(spoiled)


def test_columns_of_different_lengths_are_refused(tmp_path: Path) -> None:
    whole = profile()
    table = dict(whole.tables["gemm.bf16"])
    table["m"] = table["m"][:-1]
    path = tmp_path / "p.npz"
    path.write_bytes(write_profile(replace(whole, tables={"gemm.bf16": table})))
    with pytest.raises(ProfileError, match="different lengths"):
        read_profile(path)


def test_other_files_are_refused_in_one_line(tmp_path: Path) -> None:
    text = tmp_path / "p.npz"
    text.write_text("nothing of the kind")
    with pytest.raises(ProfileError, match="is not a hardware profile"):
        open_profile(text)
    with pytest.raises(ProfileError, match="no such profile"):
        open_profile(tmp_path / "none.npz")
    other = tmp_path / "other.npz"
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("profile.json", json.dumps({"schema_version": 99}))
    with pytest.raises(ProfileError, match="profile schema 99, this program reads 1"):
        open_profile(other)


def test_pickled_columns_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "p.npz")
    spoiled = tmp_path / "q.npz"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(spoiled, "w") as new:
        for entry in old.namelist():
            if entry == "gemm.bf16/seconds.npy":
                with new.open(entry, "w") as file:
                    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
            else:
                new.writestr(entry, old.read(entry))
    with pytest.raises(ProfileError):
        read_profile(spoiled)


def test_the_nearest_version_is_taken() -> None:
    known = [version_numbers(v) for v in ("0.14.0", "0.19.0", "0.24.0")]
    assert nearest_version((0, 15, 1, 0), known) == (0, 14, 0, 0)
    assert nearest_version((0, 33, 0, 0), known) == (0, 24, 0, 0)
    assert nearest_version((0, 16, 5, 0), [(0, 14, 0, 0), (0, 19, 0, 0)]) == (0, 14, 0, 0)
    assert nearest_version((0, 2, 0, 0), [(0, 1, 0, 0), (0, 3, 0, 0)]) == (0, 3, 0, 0)


def test_versions_are_read_as_numbers() -> None:
    assert version_numbers("0.5.6.post2") == (0, 5, 6, 2)
    assert version_numbers("1.3.0rc20") == (1, 3, 0, 20)
    assert version_numbers("main") == (0, 0, 0, 0)


def test_a_gpu_without_tables_has_no_profile() -> None:
    assert find_shipped("l40s", "vllm") is None
    assert find_shipped("h100_sxm", "no-such-engine") is None
