"""`scenario_of`: what an engine is given, as a scenario of ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.export.deployment import model_id
from twin.export.documents import yaml_text
from twin.export.engines import ENGINE_FORMATS
from twin.export.engines.rows import nest
from twin.export.header import comment
from twin.export.options import Value
from twin.export.reading.given import Given
from twin.llm.models import MODELS, find_model
from twin.load.documents import read_mapping
from twin.load.examples import find_scenario
from twin.load.overrides import apply
from twin.load.profile_file import find_gpu
from twin.load.validation import validate
from twin.scenario import DEFAULT_VERSIONS, SCENARIO_SCHEMA_VERSION, ScenarioFile

_EXAMPLE = "chat-h100"

# Methods of checkpoints: what is loaded says it already, and `--quantization` only repeats it.
_OF_CHECKPOINTS = {
    "awq", "auto_awq", "awq_marlin", "gptq", "auto_gptq", "gptq_marlin", "compressed-tensors",
    "modelopt", "modelopt_fp8", "modelopt_fp4", "moe_wna16", "mxfp4", "gpt_oss_mxfp4",
    "w8a8_int8", "auto-round", "quark",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Base:
    """What the scenario takes from elsewhere.

    Attributes:
        data: a scenario whose workload, SLO and cluster are kept; None: the example's load stands
            in for it.
        gpu: name of the GPU; None: that of `data`.
        overrides: as in `twin.load.load_scenario`, applied last.
    """

    data: Mapping[str, Any] | None = None
    gpu: str | None = None
    overrides: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """A scenario that was read.

    Attributes:
        file: validated.
        text: of the file to write, what was passed over in its head.
        notes: what a reader should know, one sentence each.
    """

    file: ScenarioFile
    text: str
    notes: tuple[str, ...]


def read_base(path: str | None) -> dict[str, Any] | None:
    """Return a scenario's plain data; None of None."""
    return None if path is None else read_mapping(find_scenario(path), "scenario file")


def scenario_of(given: Given, base: Base, *, name: str, where: str) -> Imported:
    """Return the scenario of what an engine is given.

    Args:
        given: its options.
        base: where the rest comes from.
        name: of the scenario.
        where: how messages name the configuration.

    Raises:
        InputError: an option's value the engine would refuse or that is not simulated, no network
            or GPU that is known.
    """
    notes = list(given.notes)
    form = ENGINE_FORMATS[given.engine]
    options = _told(given, notes)
    form.options.checked(nest(options), f"{where}, for {form.title}")
    keys = form.read(options)
    llm = _llm(given, base, keys, notes)
    data = _data(given, base, keys, llm, name)
    data = apply(data, base.overrides or {})
    if data.get("llm") is None:
        what, remedy = "names no model", "give --set llm=NAME (see twin models) or a config.json"
        if given.model:
            what = f"the network {_shown(given.model)} is not known"
        elif given.may_hold_model:
            what, remedy = _model_or_value(given), "put the model first, or give --model"
        raise InputError(what, where=where, remedy=remedy)
    if data.get("gpu") is None:
        raise InputError("does not say on which GPU", where=where, remedy="give --gpu or --base")
    file = validate(ScenarioFile, data, where)
    if file.profile is None:
        find_gpu(file, None, f"{where}, gpu")
    told = (*_passed_over(given, form.title), *notes, *_stands_in(base))
    return Imported(file, _text(data, told, where), told)


def _model_or_value(given: Given) -> str:
    names = ", ".join(f"--{name}" for name in given.may_hold_model)
    return f"no option known here: {names}; what follows was taken as its value, not as the model"


def _shown(model: str) -> str:
    """Return a model's name; an address, which may hold a password, stays hidden."""
    return "at an address" if "@" in model or "://" in model else repr(model[:80])


def _told(given: Given, notes: list[str]) -> dict[str, Value]:
    """Return the options that count; what only repeats a default or a checkpoint goes."""
    options = dict(given.options)
    method = options.get("quantization")
    if isinstance(method, str) and method in _OF_CHECKPOINTS:
        del options["quantization"]
        notes.append(f"quantization {method} is taken from the checkpoint.")
    if options.get("max-model-len") in ("auto", -1):
        del options["max-model-len"]
        notes.append("max-model-len auto: the longest that the network was trained for is taken.")
    if options.get("chunked-prefill-size") == -1:
        del options["chunked-prefill-size"]
        notes.append("chunked-prefill-size -1 is not simulated: chunks are on.")
    return options


def _llm(given: Given, base: Base, keys: dict[str, Value], notes: list[str]) -> str | None:
    """Return the scenario's network, and note where it is not quite the one that is loaded."""
    if given.model is None:
        own = (base.data or {}).get("llm")
        return None if own is None else str(own)
    folder = Path(given.model)
    if (folder / "config.json").is_file():
        return str(folder / "config.json")
    if given.model in MODELS:
        return given.model
    found = find_model(given.model)
    if found is None:
        return None
    if found.name in MODELS:
        own = model_id(found, found.name)
        if own != given.model:
            notes.append(
                f"{_shown(given.model)} is simulated as {found.name}; twin export will name {own}: "
                "put your own model back there."
            )
        return found.name
    plain, _, dtype = found.name.rpartition("-")
    keys.setdefault("policy.quantization", dtype)
    notes.append(f"{given.model} is taken as {plain} with all linear layers in {dtype}.")
    return plain


def _data(
    given: Given, base: Base, keys: Mapping[str, Value], llm: str | None, name: str
) -> dict[str, Any]:
    rest = dict(base.data) if base.data is not None else _stand_in()
    for key in ("schema_version", "name", "description", "llm", "gpu", "engine", "parallelism"):
        rest.pop(key, None)
    rest.pop("policy", None)
    parts = nest({key: value for key, value in keys.items() if value is not None})
    sizes = {key: size for key, size in parts.get("parallelism", {}).items() if size != 1}
    version = given.version or DEFAULT_VERSIONS[given.engine]
    data = {
        "schema_version": SCENARIO_SCHEMA_VERSION,
        "name": name,
        "llm": llm,
        "gpu": base.gpu or (base.data or {}).get("gpu"),
        "engine": {"name": given.engine, "version": version},
        "parallelism": sizes,
        "policy": parts.get("policy", {}),
        **rest,
    }
    if given.replicas is not None and given.replicas > 0:
        cluster = data.get("cluster") or {}
        if "pools" not in cluster:
            data["cluster"] = {**cluster, "replicas": given.replicas}
    return {key: value for key, value in data.items() if value != {} or key == "workload"}


def _stand_in() -> dict[str, Any]:
    data = read_mapping(find_scenario(_EXAMPLE), "scenario file")
    return {key: data[key] for key in ("workload", "slo", "seed")}


def _stands_in(base: Base) -> tuple[str, ...]:
    if base.data is not None or any(k.startswith("workload") for k in base.overrides or {}):
        return ()
    return (
        f"The workload and the SLO are those of the example {_EXAMPLE}: put your own in, for "
        "example with --set workload.path=trace.csv.",
    )


def _passed_over(given: Given, title: str) -> list[str]:
    """Name options, never their values: one may be a key or a token."""
    found = [
        f"Warning: {what} ({', '.join(names)}) is not modelled: measured latencies will differ "
        "from the forecast."
        for what, names in given.unmodelled.items()
    ]
    if given.may_hold_model:
        found.append(f"Warning: {_model_or_value(given)}.")
    if given.passed_over:
        found.append(f"Not simulated: {', '.join(given.passed_over)}.")
    for name, remedy in given.unknown:
        hint = f"; {remedy}" if remedy else ""
        found.append(f"Not simulated, and no option of {title} known here: {name}{hint}")
    return found


def _text(data: Mapping[str, Any], notes: tuple[str, ...], where: str) -> str:
    lines = [f"Read from {where} by twin import-config.", *(f"- {note}" for note in notes)]
    return comment(lines) + yaml_text(data)
