"""A profile that a user names is refused in one line where it can price nothing."""

import io
import json
import zipfile

import numpy as np
import pytest

from hwmodels.given import read_given
from hwmodels.profile import (
    HardwareProfile,
    ProfileError,
    Provenance,
    read_profile,
    shipped_profiles,
    write_profile,
)
from hwmodels.profile_check import check_profile

GEMM = {"m": [16, 32], "n": [64, 64], "k": [64, 64], "seconds": [1e-6, 2e-6]}


def written(tmp_path, **more):
    fields = {
        "name": "h100_sxm-servetwin-0.1.0",
        "gpu": "h100_sxm",
        "engine": "servetwin",
        "engine_version": "0.1.0",
        "kind": "kernels",
        "provenance": Provenance("made up", "none", "2026-01-01"),
        "tables": {"gemm.bf16": {name: np.array(values) for name, values in GEMM.items()}},
    }
    path = tmp_path / "profile.npz"
    path.write_bytes(write_profile(HardwareProfile(**{**fields, **more})))
    return path


def refused(path):
    with pytest.raises(ProfileError) as caught:
        read_given(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_the_profile_that_is_changed_here_is_a_good_one(tmp_path):
    assert read_given(written(tmp_path)).profile.gpu == "h100_sxm"


def test_shipped_profiles_hold():
    kept = [read_profile(path) for path in shipped_profiles().values()]
    kernels = [profile for profile in kept if profile.kind == "kernels"]
    assert kernels
    for profile in kernels:
        check_profile(profile)


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        ("seconds", [1e-6, -1e-6], "column seconds holds -1e-06"),
        ("seconds", [1e-6, 0.0], "column seconds holds 0"),
        ("seconds", [1e-6, np.nan], "not finite"),
        ("seconds", [1e-6, np.inf], "not finite"),
        ("seconds", ["1", "2"], "holds no list of numbers"),
        ("m", [0, 16], "column m holds 0"),
        ("m", [-16, 16], "column m holds -16"),
        ("m", [1j, 16], "holds no list of numbers"),
    ],
)
def test_rows_that_nobody_can_have_measured_are_refused(tmp_path, column, values, says):
    table = {name: np.array(kept) for name, kept in GEMM.items()}
    table[column] = np.array(values)
    assert says in refused(written(tmp_path, tables={"gemm.bf16": table}))


def test_a_table_without_rows_or_a_column_is_refused(tmp_path):
    none = {name: np.zeros(0) for name in GEMM}
    assert "no list of numbers" in refused(written(tmp_path, tables={"gemm.bf16": none}))
    some = {name: np.array(values) for name, values in GEMM.items() if name != "k"}
    assert "lacks the column k" in refused(written(tmp_path, tables={"gemm.bf16": some}))


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ([1], "parameters are no names and values"),
        ({"launch": 3}, "parameters of launch"),
        ({"memory": "x"}, "parameters of memory"),
        ({"launch": {"graph_gap_s": None}}, "launch.graph_gap_s is None"),
        ({"launch": {"graph_gap_s": "x"}}, "launch.graph_gap_s is 'x'"),
        ({"launch": {"graph_gap_s": -1.0}}, "launch.graph_gap_s is -1.0"),
        ({"launch": {"graph_gap_s": 3.0}}, "at most 1 s can be meant"),
        ({"gemm": {"tensor": float("nan")}}, "gemm.tensor is nan"),
        ({"stream": True}, "stream is True"),
    ],
)
def test_parameters_that_are_none_are_refused(tmp_path, parameters, says):
    assert says in refused(written(tmp_path, parameters=parameters))


def test_a_hard_maximum_is_kept(tmp_path):
    assert read_given(written(tmp_path, parameters={"gemm": {"p_norm": None}}))


@pytest.mark.parametrize("name", ["name", "gpu", "engine", "engine_version"])
@pytest.mark.parametrize("value", [None, 3, [1], {}])
def test_texts_are_texts(tmp_path, name, value):
    assert f"its {name} is" in refused(written(tmp_path, **{name: value}))


@pytest.mark.parametrize("text", ["null", "[]", "3", "[" * 100_000, '{"schema_version": 1}'])
def test_a_header_that_is_none_is_refused(tmp_path, text):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("profile.json", text)
    path = tmp_path / "profile.npz"
    path.write_bytes(buffer.getvalue())
    refused(path)


@pytest.mark.parametrize("key", ["held_out", "facts", "tables", "provenance"])
@pytest.mark.parametrize("value", [None, 3, [1], "x"])
def test_a_header_whose_parts_are_of_another_kind_is_refused(tmp_path, key, value):
    path = written(tmp_path)
    with zipfile.ZipFile(path) as archive:
        kept = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(kept["profile.json"])
    kept["profile.json"] = json.dumps({**header, key: value}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in kept.items():
            archive.writestr(name, data)
    refused(path)
