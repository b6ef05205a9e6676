"""Targets vllm, sglang and trtllm: a server's configuration file, and its command line."""

from twin.errors import InputError
from twin.export.deployment import Deployment, Part, slug
from twin.export.documents import command_text, yaml_text
from twin.export.engines import ENGINE_FORMATS
from twin.export.engines.config import EngineConfig, EngineFormat
from twin.export.header import header, plain_caveats


def vllm_files(deployment: Deployment) -> dict[str, str]:
    """Return the YAML for `vllm serve --config`, and the same as a command line."""
    return _server_files(deployment, "vllm")


def sglang_files(deployment: Deployment) -> dict[str, str]:
    """Return the YAML for `sglang serve --config`, and the same as a command line."""
    return _server_files(deployment, "sglang")


def trtllm_files(deployment: Deployment) -> dict[str, str]:
    """Return the YAML of LLM-API options for `trtllm-serve`, and the command that names it."""
    return _server_files(deployment, "trtllm")


def engine_of(deployment: Deployment, wanted: str | None = None) -> EngineFormat:
    """Return how a deployment's engine is configured.

    Raises:
        InputError: `wanted` names another engine than was simulated.
    """
    name = deployment.scenario.file.engine.name
    if wanted is not None and wanted != name:
        raise InputError(
            f"the scenario's engine is {name}, not {wanted}",
            where=deployment.origin,
            remedy=f"give --to {name}, or --set 'engine={{name: {wanted}}}'",
        )
    return ENGINE_FORMATS[name]


def file_stem(engine: str, part: Part) -> str:
    """Return the name of a part's file without its ending."""
    return f"{engine}-{slug(part.name)}" if part.name else engine


def _server_files(deployment: Deployment, engine: str) -> dict[str, str]:
    form = engine_of(deployment, engine)
    files: dict[str, str] = {}
    for part in deployment.parts:
        stem = file_stem(engine, part)
        config = form.write(part)
        command = form.with_file.format(file=f"{stem}.yaml", model=part.model)
        top = header(
            deployment,
            part,
            form,
            config,
            run=[f"Run: {command}"],
            caveats=plain_caveats(deployment, part),
        )
        files[f"{stem}.yaml"] = top + yaml_text(config.options.as_dict())
        files[f"{stem}.sh"] = f"#!/bin/sh\n{top}{_command(form, config, part, f'{stem}.yaml')}"
    return files


def _command(form: EngineFormat, config: EngineConfig, part: Part, file: str) -> str:
    return command_text(form.command(part.model, file), form.arguments(config.options))
