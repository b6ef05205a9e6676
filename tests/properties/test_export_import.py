"""Export, then import: what an engine has comes back as it was."""

import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.random_policies import random_scenario
from tests.golden.export.cases import BASE, SUMMARY
from twin.export.deployment import deployment_of, model_id
from twin.export.engines import ENGINE_FORMATS
from twin.export.engines.rows import leaves
from twin.export.reading.command_line import shell_words
from twin.export.reading.given import Given
from twin.export.reading.scenario import Base, scenario_of
from twin.export.reading.sources import combined, read_command, read_text_source
from twin.export.targets import EXPORTERS
from twin.llm.models import MODELS
from twin.load import scenario_from
from twin.scenario import ScenarioFile

# Two names of one thing, as the simulation takes them too; some engines have but one of them.
SAME = {"fp8_e4m3": "fp8"}
PAIRS = [(name, engine) for name, one in EXPORTERS.items() for engine in one.engines]


def reread(target: str, engine: str, files: dict[str, str]) -> ScenarioFile:
    """Return the scenario of a target's files; TensorRT-LLM's YAML alone names no model."""
    names = list(files)
    found = read_text_source(files[names[0]], names[0], engine if target == engine else None)
    if target == "trtllm":
        found = combined(found, read_command(shell_words(files["trtllm.sh"]), "trtllm.sh"))
    base = Base({"workload": BASE["workload"], "slo": BASE["slo"]}, gpu=BASE["gpu"])
    return scenario_of(found, base, name="golden", where=names[0]).file


def normal(key: str, value: Any, engine: str) -> Any:
    """Return a value as an engine knows it: its default said aloud is its default."""
    if key == "kv_cache_dtype":
        return SAME.get(value, value)
    if key == "async_scheduling" and engine != "vllm":
        return value is not False
    return value


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@pytest.mark.parametrize(("target", "engine"), PAIRS)
@given(seed=st.integers(0, 2**32))
def test_what_the_engine_has_comes_back(target: str, engine: str, seed: int) -> None:
    scenario = scenario_from({**BASE, **random_scenario(engine, random.Random(seed))})
    deployment = deployment_of(scenario, "mine.yaml", SUMMARY)
    carried = ENGINE_FORMATS[engine].write(deployment.parts[0]).carried
    back = reread(target, engine, EXPORTERS[target].files(deployment))
    before = {key: (value, default) for key, value, default in leaves(scenario.file.policy)}
    after = {key: value for key, value, _ in leaves(back.policy)}
    own = scenario.file.policy.quantization == "none"  # the checkpoint's own says the same
    for key, (value, default) in before.items():
        kept = value if key in carried and not (own and key == "quantization") else default
        assert normal(key, after[key], engine) == normal(key, kept, engine), key
    assert back.parallelism == scenario.file.parallelism
    assert (back.llm, back.gpu) == (scenario.file.llm, scenario.file.gpu)
    assert back.engine.name == engine


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_command_line_and_file_say_the_same(engine: str, seed: int) -> None:
    scenario = scenario_from({**BASE, **random_scenario(engine, random.Random(seed))})
    files = EXPORTERS[engine].files(deployment_of(scenario, "mine.yaml", SUMMARY))
    read = [read_text_source(files[f"{engine}.{end}"], end, engine) for end in ("yaml", "sh")]
    base = Base({"workload": BASE["workload"]}, gpu="h100_sxm")
    first, second = (scenario_of(one, base, name="x", where="x").file for one in read)
    told = [{k: normal(k, v, engine) for k, v, _ in leaves(f.policy)} for f in (first, second)]
    assert told[0] == told[1]
    assert first.parallelism == second.parallelism


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_network_is_found_again(name: str) -> None:
    read = Given("vllm", model=model_id(MODELS[name], name))
    base = Base({"workload": BASE["workload"]}, gpu="h100_sxm")
    assert scenario_of(read, base, name="x", where="x").file.llm == name
