"""What a file or a command line says: engine options, wherever they stand in it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from twin.errors import InputError
from twin.export.engines.rows import flatten
from twin.export.options import Value
from twin.export.reading.command_line import (
    Server,
    arguments,
    find_server,
    may_hold_model,
    shell_words,
)
from twin.export.reading.given import Given
from twin.export.reading.latency import unmodelled
from twin.export.reading.names import (
    FILES,
    known_names,
    meant,
    own_name,
    printable,
    simulated_names,
)
from twin.export.reading.values import json_mapping, typed
from twin.load.documents import parse_yaml, parse_yaml_documents

_WORKLOADS = ("containers", "podTemplate", "template", "spec", "components", "services")
Pairs = Iterable[tuple[str, Value]]


def read_text_source(text: str, where: str, engine: str | None = None) -> Given:
    """Return what a text says: an engine's YAML, a Kubernetes manifest, Helm values or a command.

    Args:
        text: of the file.
        where: how messages name it.
        engine: whose it is; None: as it shows.

    Raises:
        InputError: it is none of them, or does not show whose it is.
    """
    words = shell_words(text)
    if find_server(words) is not None and not _is_mapping(text):
        return read_command(words, where, engine)
    documents = parse_yaml_documents(text, where)
    mappings = [one for one in documents if isinstance(one, dict)]
    if not mappings or len(mappings) != len(documents):
        raise InputError(
            "is neither an engine's YAML, nor a manifest, nor a command that starts a server",
            where=where,
            remedy="give a file that vllm, sglang or trtllm-serve takes, or --args",
        )
    if any("apiVersion" in one or "modelArtifacts" in one for one in mappings):
        return _read_manifest(mappings, where, engine)
    if len(mappings) > 1:
        raise InputError("holds several documents", where=where, remedy="give one engine's file")
    return _given(engine or _engine_of(mappings[0], where), _yaml_pairs(mappings[0]))


def read_command(words: list[str], where: str, engine: str | None = None) -> Given:
    """Return what a command line says.

    Args:
        words: of the command; or only a server's options, if `engine` says whose.
        where: how messages name it.
        engine: whose it is; None: as it shows.

    Raises:
        InputError: it starts no server that is known, or another engine's.
    """
    server = find_server(words)
    if server is None and engine is not None:
        server = Server(engine, tuple(words))
    if server is None:
        raise InputError(
            "starts none of vllm serve, sglang serve, trtllm-serve",
            where=where,
            remedy="give the whole command, or --engine",
        )
    _check_engine(server.engine, engine, where)
    return _of_server(server, where)


def combined(file: Given, command: Given) -> Given:
    """Return what a file and a command line say together: the command line goes first."""
    model = command.model or file.model
    slower = {
        what: tuple(dict.fromkeys((*file.unmodelled.get(what, ()), *names)))
        for what, names in {**file.unmodelled, **command.unmodelled}.items()
    }
    return Given(
        engine=file.engine,
        version=command.version or file.version,
        model=model,
        options={**file.options, **command.options},
        replicas=file.replicas,
        passed_over=tuple(dict.fromkeys((*file.passed_over, *command.passed_over))),
        unmodelled=slower,
        may_hold_model=() if model else (*file.may_hold_model, *command.may_hold_model),
        unknown=tuple(dict.fromkeys((*file.unknown, *command.unknown))),
        notes=tuple(dict.fromkeys((*file.notes, *_but_files(command.notes)))),
    )


def _but_files(notes: tuple[str, ...]) -> list[str]:
    return [note for note in notes if "names a file that was not read" not in note]


def _of_server(server: Server, where: str, attached: Mapping[str, str] | None = None) -> Given:
    pairs = list(arguments(server.engine, server.words))
    notes, inner = list[str](), list[tuple[str, Value]]()
    for name, value in pairs:
        if own_name(server.engine, name) in FILES or name in FILES:
            text = (attached or {}).get(str(value).rpartition("/")[2])
            if text is None:
                notes.append(f"--{name} names a file that was not read; import that file too.")
            else:
                inner += _yaml_pairs(_mapping(parse_yaml(text, where)))
    rest = [(name, value) for name, value in pairs if name not in FILES]
    # TensorRT-LLM's file goes before its command line, the others' command line before the file.
    ordered = [*rest, *inner] if server.engine == "trtllm" else [*inner, *rest]
    given = _given(server.engine, ordered)
    unsure = () if given.model else may_hold_model(server.engine, server.words)
    return replace(
        given, version=server.version, may_hold_model=unsure, notes=(*given.notes, *notes)
    )


def _is_mapping(text: str) -> bool:
    try:
        return any(isinstance(one, dict) for one in parse_yaml_documents(text, ""))
    except InputError:
        return False


def _engine_of(data: Mapping[str, Any], where: str) -> str:
    """Return the engine most of whose options these are."""
    flat = flatten(data)
    found = {
        engine: sum(own_name(engine, str(key)) in known_names(engine) for key in flat)
        for engine in ("vllm", "sglang", "trtllm")
    }
    best = max(found.values())
    likely = [engine for engine, count in found.items() if count == best]
    if best == 0 or len(likely) > 1:
        raise InputError(
            "does not show whose configuration it is", where=where, remedy="give --engine"
        )
    return likely[0]


def _yaml_pairs(data: Mapping[str, Any]) -> list[tuple[str, Value]]:
    return [(str(key), value) for key, value in data.items()]


def _given(engine: str, pairs: Pairs) -> Given:
    """Sort options into those that are simulated, those that are not, and those there are none."""
    model, options = None, dict[str, Value]()
    passed_over, unknown = dict[str, None](), dict[str, str]()
    slower = dict[str, dict[str, None]]()
    simulated, known = simulated_names(engine), known_names(engine)
    for name, value in _flat_pairs(engine, pairs):
        if name in ("model", "model-path"):
            model = str(value)
        elif name in simulated:
            options[name] = typed(engine, name, value)
        elif what := unmodelled(engine, name, value):
            slower.setdefault(what, {})[name] = None
        elif name in known or name.partition(".")[0] in known:
            passed_over[name] = None
        elif name.startswith("no-") and name[3:] in known:
            passed_over[name[3:]] = None
        else:
            unknown[printable(name)] = meant(engine, name)
    return Given(
        engine=engine,
        model=model,
        options=options,
        passed_over=tuple(passed_over),
        unmodelled={what: tuple(names) for what, names in slower.items()},
        unknown=tuple(unknown.items()),
    )


def _flat_pairs(engine: str, pairs: Pairs) -> Iterator[tuple[str, Value]]:
    nested = {name.partition(".")[0] for name in simulated_names(engine) if "." in name}
    for written, value in pairs:
        name = own_name(engine, written)
        if name.startswith("no-") and name[3:] in simulated_names(engine) and value is True:
            yield name[3:], False
            continue
        data = json_mapping(value) if isinstance(value, str) and name in nested else value
        if name in nested and isinstance(data, Mapping):
            yield from ((f"{name}.{key}", inner) for key, inner in data.items())
        else:
            yield name, value


def _read_manifest(documents: list[dict[str, Any]], where: str, engine: str | None) -> Given:
    """Return what the first server of a manifest's containers is given."""
    attached = {
        str(name): str(text)
        for one in documents
        if one.get("kind") == "ConfigMap"
        for name, text in _mapping(one.get("data")).items()
    }
    for document in documents:
        if "modelArtifacts" in document:
            document = _chart_as_containers(document)
        for container, replicas in _containers(document, None):
            words = [str(w) for w in (*_words(container, "command"), *_words(container, "args"))]
            server = find_server(words, str(container.get("image", "")))
            if server is not None:
                _check_engine(server.engine, engine, where)
                return replace(_of_server(server, where, attached), replicas=replicas)
    raise InputError(
        "has no container that starts a server",
        where=where,
        remedy="give the manifest of vLLM, SGLang or TensorRT-LLM",
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _words(container: Mapping[str, Any], key: str) -> list[Any]:
    found = container.get(key) or []
    return found if isinstance(found, list) else [found]


def _containers(node: Any, replicas: int | None) -> Iterator[tuple[Mapping[str, Any], int | None]]:
    """Yield (container, how many replicas) wherever a manifest has them."""
    if isinstance(node, list):
        for item in node:
            yield from _containers(item, replicas)
    if not isinstance(node, Mapping):
        return
    own = node.get("replicas")
    replicas = own if isinstance(own, int) and not isinstance(own, bool) else replicas
    for key in _WORKLOADS:
        child = node.get(key)
        if key == "containers" and isinstance(child, list):
            yield from ((one, replicas) for one in child if isinstance(one, Mapping))
        elif key == "services" and isinstance(child, Mapping):
            yield from _containers(list(child.values()), replicas)
        elif child is not None:
            yield from _containers(child, replicas)
    pod = node.get("extraPodSpec")
    if isinstance(pod, Mapping) and isinstance(pod.get("mainContainer"), Mapping):
        yield pod["mainContainer"], replicas


def _chart_as_containers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return llm-d's Helm values as a manifest: the chart adds model and parallelism itself."""
    decode, artifacts = _mapping(values.get("decode")), _mapping(values.get("modelArtifacts"))
    sizes = _mapping(decode.get("parallelism"))
    more = [str(artifacts.get("name", ""))]
    for key, option in (("tensor", "tensor-parallel-size"), ("data", "data-parallel-size")):
        if key in sizes:
            more += [f"--{option}", str(sizes[key])]
    containers = [
        {**one, "command": ["vllm", "serve"], "args": [*more, *_words(one, "args")]}
        for one in _words(decode, "containers")
        if isinstance(one, Mapping)
    ]
    return {"spec": {"replicas": decode.get("replicas"), "containers": containers}}


def _check_engine(found: str, wanted: str | None, where: str) -> None:
    if wanted is not None and wanted != found:
        raise InputError(f"is {found}'s", where=where, remedy=f"give --engine {found} or leave it")
