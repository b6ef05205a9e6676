"""Exported files, byte for byte; `python -m tests.golden.export.write` writes them anew."""

import json

import pytest

from tests.conformance.cases import BAD, ENGINES, RANDOM_CASES, digest, kept_digests, random_files
from tests.golden.export.cases import CASES, FOLDER, exported
from twin.export.engines import ENGINE_FORMATS
from twin.export.reading.names import known_names

RECORDS = FOLDER.parent / "conformance"


@pytest.mark.parametrize("case", sorted(CASES))
def test_files_are_those_that_are_kept(case: str) -> None:
    found = exported(case)
    kept = {path.name: path.read_text(encoding="utf-8") for path in (FOLDER / case).iterdir()}
    assert found == kept


def test_no_case_is_kept_that_is_gone() -> None:
    folders = {str(p.parent.relative_to(FOLDER)) for p in FOLDER.glob("*/*/*") if p.is_file()}
    assert folders == set(CASES)


def record(engine: str) -> dict:
    version = ENGINE_FORMATS[engine].version
    return json.loads((RECORDS / f"{engine}-{version}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("engine", ENGINES)
def test_the_engines_parser_has_judged_todays_files(engine: str) -> None:
    """Where this fails, an export has changed since: run `make conformance`."""
    assert record(engine)["digests"] == kept_digests(engine)
    assert record(engine)["version"] == ENGINE_FORMATS[engine].version


@pytest.mark.parametrize("engine", ENGINES)
def test_the_engines_parser_took_every_file_and_refused_every_bad_value(engine: str) -> None:
    cases = record(engine)["cases"]
    assert {c["name"] for c in cases if not c["right"]} == {f"bad: {w}" for w, _ in BAD[engine]}
    assert all(c["says"] for c in cases if not c["right"])
    right = [c for c in cases if c["right"]]
    assert [c for c in right if c["says"] is not None] == []
    assert {c["name"] for c in right} >= set(kept_digests(engine))
    assert sum(c["name"].startswith("random/") for c in right) == RANDOM_CASES


@pytest.mark.parametrize("engine", ENGINES)
def test_random_policies_are_the_same_every_time(engine: str) -> None:
    first = {name: digest(text) for name, text in random_files(engine)}
    assert first == {name: digest(text) for name, text in random_files(engine)}
    assert len(set(first.values())) > RANDOM_CASES // 2


@pytest.mark.parametrize("engine", sorted(ENGINE_FORMATS))
def test_what_is_written_is_among_the_engines_options(engine: str) -> None:
    form = ENGINE_FORMATS[engine]
    names = {row.option for row in form.rows if row.option}
    flags = FOLDER.parents[2] / "twin/export/reading/flags" / f"{engine}.txt"
    listed = {line.split()[0] for line in flags.read_text().splitlines()}
    assert {n if n in listed else n.partition(".")[0] for n in names} <= listed
    assert names <= known_names(engine)
