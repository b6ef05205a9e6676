"""The user guide against the program: examples load and run, keys and defaults are all told."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml
from pydantic import BaseModel

from calibrate.cli import app as calibrate
from tests.unit.caching.traces import SESSIONS, written
from twin.caching.accesses import accesses_of
from twin.caching.comparison import compare_policies
from twin.caching.question import BELADY, CacheQuestion
from twin.cli.app import app
from twin.engine import simulate
from twin.engine.result import RequestTable, SimulationResult, StepTable
from twin.load import load_policy, load_scenario, read_scenario_file
from twin.load.capacity_question import CapacityQuestion, answer
from twin.load.documents import parse_yaml
from twin.load.inputs import read_inputs
from twin.memory.explanation import explain
from twin.memory.kv_advice import Run, advise
from twin.paging.eviction import EVICTION
from twin.report.metrics import summarise
from twin.report.output import FILES
from twin.scenario import ScenarioFile
from twin.sweep.answer import sweep_answer
from twin.sweep.sizing import size_replicas
from twin.sweep.sweep import sweep_load
from twin.telemetry.prometheus import prometheus_text
from twin.workload.readers import READERS, read_trace, recognise

ROOT = Path(__file__).resolve().parents[3]
GUIDE = ROOT / "docs" / "guide"
PAGES = sorted(GUIDE.glob("*.md"))
MARKER = re.compile(r"<!-- ([a-z]+)(?:: (\S+))? -->")
KINDS = ("scenario", "workload", "policy", "part")

# A small deployment that fragments of a scenario are tried in.
BASE: dict[str, Any] = {
    "schema_version": 1,
    "llm": "llama-3.1-8b",
    "gpu": "h100_sxm",
    "workload": {
        "kind": "synthetic",
        "arrivals": {"kind": "poisson", "rate": 4},
        "num_requests": 20,
        "prompt_tokens": 100,
        "output_tokens": 20,
    },
}


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the marker comment right above it."""

    page: str
    line: int
    language: str
    text: str
    marker: str
    value: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def fenced_blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].startswith("```"):
            at += 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
        found = MARKER.fullmatch(lines[at - 1].strip()) if at else None
        marker, value = (found.group(1), found.group(2) or "") if found else ("", "")
        text = "\n".join(lines[at + 1 : end]) + "\n"
        yield Block(page.name, at + 1, lines[at][3:].strip(), text, marker, value)
        at = end + 1


def tables(page: Path) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield (marker, value, cells of each body row) of every table with a marker above it."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for at, line in enumerate(lines):
        found = MARKER.fullmatch(line.strip())
        if not found or at + 1 >= len(lines) or not lines[at + 1].startswith("|"):
            continue
        end = at + 1
        while end < len(lines) and lines[end].startswith("|"):
            end += 1
        rows = [split_row(row) for row in lines[at + 3 : end]]
        yield found.group(1), found.group(2) or "", rows


def split_row(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


BLOCKS = [block for page in PAGES for block in fenced_blocks(page)]
README = ROOT / "README.md"
README_BLOCKS = list(fenced_blocks(README)) if README.exists() else []
YAML = [block for block in BLOCKS if block.language == "yaml"]
TABLES = [(page.name, *table) for page in PAGES for table in tables(page)]


def keys_of(marker: str, value: str) -> list[str]:
    """Return the names in the first column of the tables with this marker."""
    found = [rows for _, m, v, rows in TABLES if (m, v) == (marker, value)]
    assert found, f"no table is marked <!-- {marker}: {value} -->"
    return [name for rows in found for row in rows for name in re.findall(r"`([^`]+)`", row[0])]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with every data file that the guide prints."""
    for block in BLOCKS:
        if block.marker == "file":
            (tmp_path / block.value).write_text(block.text, encoding="utf-8")
    return tmp_path


def whole(text: str) -> str:
    """Return the scenario that a text is, or is a part of, as YAML; the text itself stays as is."""
    given = parse_yaml(text, "example")
    if "llm" in given:
        return text
    return yaml.safe_dump({k: v for k, v in BASE.items() if k not in given}) + text


def test_every_yaml_block_of_the_guide_says_what_it_is() -> None:
    assert YAML
    unmarked = [str(block) for block in YAML if block.marker not in (*KINDS, "file")]
    assert unmarked == []


@pytest.mark.parametrize("block", [b for b in YAML if b.marker in KINDS], ids=str)
def test_yaml_example_runs(block: Block, folder: Path) -> None:
    path = folder / "example.yaml"
    if block.marker == "policy":
        path.write_text(block.text, encoding="utf-8")
        load_policy(path)
        return
    assert ("llm:" in block.text) == (block.marker == "scenario")
    path.write_text(whole(block.text), encoding="utf-8")
    result = simulate(load_scenario(path))
    assert len(result.requests) > 0
    assert summarise(result)["finished"] > 0


def test_yaml_in_the_readme_validates(folder: Path) -> None:
    path = folder / "example.yaml"
    for block in README_BLOCKS:
        if block.language == "yaml":
            path.write_text(whole(block.text), encoding="utf-8")
            read_scenario_file(path)


def test_every_printed_trace_is_recognised_and_every_format_is_printed(folder: Path) -> None:
    names = [
        block.value
        for block in BLOCKS
        if block.marker == "file" and Path(block.value).suffix in (".csv", ".json", ".jsonl")
    ]
    assert {recognise(folder / name) for name in names} == set(READERS)


def models_under(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the model and all that its fields may hold, by name."""
    found: dict[str, type[BaseModel]] = {}
    pending: list[Any] = [model]
    while pending:
        node = pending.pop()
        if isinstance(node, type) and issubclass(node, BaseModel):
            if node.__name__ not in found:
                found[node.__name__] = node
                pending += [field.annotation for field in node.model_fields.values()]
        else:
            pending += getattr(node, "__args__", ())
    return found


MODELS = models_under(ScenarioFile)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_key_of_a_model_is_documented_and_no_other(name: str) -> None:
    assert sorted(keys_of("model", name)) == sorted(MODELS[name].model_fields)


def test_no_table_documents_a_model_that_is_gone() -> None:
    assert {value for _, marker, value, _ in TABLES if marker == "model"} == set(MODELS)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_documented_defaults_are_the_programs(name: str) -> None:
    rows = [row for _, m, v, rows in TABLES if (m, v) == ("model", name) for row in rows]
    for cells in rows:
        key = cells[0].strip("`")
        field = MODELS[name].model_fields[key]
        told = cells[-1]
        if field.is_required():
            assert told == "required", f"{name}.{key}"
        elif isinstance(field.default, BaseModel):
            assert told == "section", f"{name}.{key}"
        elif field.default is None:
            assert told == "none", f"{name}.{key}"
        elif isinstance(field.default, tuple):
            assert yaml.safe_load(told.strip("`")) == list(field.default), f"{name}.{key}"
        else:
            assert yaml.safe_load(told.strip("`")) == field.default, f"{name}.{key}"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> SimulationResult:
    path = tmp_path_factory.mktemp("guide") / "base.yaml"
    path.write_text(yaml.safe_dump({**BASE, "slo": {"ttft_s": 1, "tpot_s": 0.1}}))
    return simulate(load_scenario(path))


def dotted(data: dict[str, Any]) -> set[str]:
    """Return the keys of nested mappings, `ttft_s.p50` for one inside another."""
    keys = set()
    for key, value in data.items():
        inner = dotted(value) if isinstance(value, dict) else {""}
        keys |= {f"{key}.{name}" if name else key for name in inner}
    return keys


def test_every_figure_is_documented(result: SimulationResult) -> None:
    percentiles = set(keys_of("keys", "percentiles"))
    summary = summarise(result)
    flat = {
        key
        for name, value in summary.items()
        for key in (
            [name]
            if isinstance(value, dict) and set(value) == percentiles
            else dotted({name: value})
        )
    }
    assert sorted(keys_of("keys", "summary")) == sorted(flat)


def test_every_figure_of_clients_is_documented(tmp_path: Path) -> None:
    path = tmp_path / "clients.yaml"
    path.write_text(yaml.safe_dump({**BASE, "clients": {"timeout_s": 5}}))
    percentiles = set(keys_of("keys", "percentiles"))
    clients = summarise(simulate(load_scenario(path)))["clients"]
    flat = {
        key
        for name, value in clients.items()
        for key in (
            [name]
            if isinstance(value, dict) and set(value) == percentiles
            else dotted({name: value})
        )
    }
    assert sorted(keys_of("keys", "clients")) == sorted(flat)


def test_every_column_is_documented() -> None:
    for table in (RequestTable, StepTable):
        documented = keys_of("keys", table.__name__)
        assert sorted(documented) == sorted(field.name for field in fields(table))


def test_every_field_of_a_result_is_documented() -> None:
    names = {field.name for field in fields(SimulationResult)}
    assert set(keys_of("keys", "SimulationResult")) == names


def test_every_metric_is_documented(result: SimulationResult) -> None:
    wire = re.findall(r"^# TYPE (\S+)", prometheus_text(result), flags=re.MULTILINE)
    assert sorted(keys_of("keys", "metrics")) == sorted(wire)


def test_every_output_file_is_documented() -> None:
    assert sorted(keys_of("keys", "files")) == sorted(FILES)


def test_every_key_of_the_capacity_answer_is_documented() -> None:
    data = answer(CapacityQuestion("llama-3.1-8b", "h100_sxm")).as_dict()
    assert sorted(keys_of("keys", "capacity")) == sorted(data)


def test_every_key_of_the_memory_answer_is_documented() -> None:
    data = explain(load_scenario("chat-h100")).as_dict()
    assert sorted(keys_of("keys", "memory")) == sorted(data)


def test_every_key_of_the_kv_dtype_answer_is_documented(result: SimulationResult) -> None:
    run = Run(load_scenario("chat-h100"), result, summarise(result))
    assert sorted(keys_of("keys", "kv-dtype")) == sorted(advise(run, run).as_dict())


def test_every_key_of_a_cache_comparison_is_documented(tmp_path: Path) -> None:
    accesses = accesses_of(read_trace(written(tmp_path, SESSIONS)))
    data = compare_policies("trace", accesses, CacheQuestion(("lru",), (2,))).as_dict()
    assert sorted(keys_of("keys", "cache")) == sorted(data)
    assert sorted(keys_of("keys", "cache_row")) == sorted(data["rows"][0])


def test_every_key_of_a_sweep_and_of_a_sizing_is_documented() -> None:
    overrides = {"workload.num_requests": 20}
    file, base = read_scenario_file("chat-h100", overrides)
    inputs = read_inputs(file, base, where="test")
    sweep, sizing = sweep_answer(sweep_load(file, inputs, (1,))), size_replicas(file, inputs)
    assert sorted(keys_of("keys", "sweep")) == sorted(sweep)
    assert sorted(keys_of("keys", "sweep_point")) == sorted(sweep["points"][0])
    assert sorted(keys_of("keys", "sizing")) == sorted(sizing.as_dict())
    assert sorted(keys_of("keys", "sized_run")) == sorted(sizing.as_dict()["runs"][0])


def test_every_eviction_policy_is_documented() -> None:
    page = (GUIDE / "cache.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z0-9_]+)` \|", page.split("## JSON")[0], re.M)) == {
        *EVICTION,
        BELADY,
    }


def commands(command: Any, prefix: str = "twin") -> Iterator[tuple[str, Any]]:
    for name, sub in getattr(command, "commands", {}).items():
        if hasattr(sub, "commands"):
            yield from commands(sub, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}", sub


COMMANDS = dict(commands(typer.main.get_command(app)))
CALIBRATE = dict(commands(typer.main.get_command(calibrate), "twin-calibrate"))


@pytest.mark.parametrize("name", sorted({**COMMANDS, **CALIBRATE}))
def test_every_command_and_option_is_documented(name: str) -> None:
    page = (GUIDE / "commands.md").read_text(encoding="utf-8")
    level = "##" if name in COMMANDS else "###"
    heading = f"\n{level} {name}\n"
    assert heading in page
    section = re.split(r"\n##+ ", page.split(heading)[1])[0]
    cells = [split_row(line)[0] for line in section.splitlines() if line.startswith("|")]
    told = {option for cell in cells for option in re.findall(r"`(--[a-z-]+)", cell)}
    parameters = {**COMMANDS, **CALIBRATE}[name].params
    options = {option for one in parameters for option in (*one.opts, *one.secondary_opts)}
    assert told == {o for o in options if o.startswith("--")} - {"--help"}


def test_no_heading_names_a_command_that_is_gone() -> None:
    page = (GUIDE / "commands.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^## (twin .+)$", page, flags=re.MULTILINE)) == set(COMMANDS)
    told = re.findall(r"^### (twin-calibrate .+)$", page, flags=re.MULTILINE)
    assert set(told) == set(CALIBRATE)


def test_python_examples_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    namespace: dict[str, Any] = {"__name__": "example"}
    blocks = [b for b in BLOCKS if b.page == "python.md" and b.language == "python"]
    assert blocks
    for block in blocks:
        exec(compile(block.text, str(block), "exec"), namespace)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if "://" in target:
            continue
        other = (page.parent / name) if name else page
        assert other.exists(), target
        headings = re.findall(r"^#+ (.+)$", other.read_text(encoding="utf-8"), flags=re.MULTILINE)
        anchors = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
        assert not anchor or anchor in anchors, target
