"""`twin capacity`: how many KV blocks fit, what takes the rest, and at which TP it fits."""

from pathlib import Path
from typing import Annotated

import typer

from twin.cli.output import JSON_HELP, check_writable, console_for, emit_json


def capacity_command(
    model: Annotated[str, typer.Option(help="A name of `twin models`, or a config.json.")],
    gpu: Annotated[str, typer.Option(help="A name of `twin gpus`.")],
    tp: Annotated[int, typer.Option(min=1, max=64, help="Tensor parallel ranks.")] = 1,
    pp: Annotated[int, typer.Option(min=1, max=64, help="Pipeline stages.")] = 1,
    gpu_memory_utilization: Annotated[
        float | None,
        typer.Option(help="Share of GPU memory the engine may use; default: the engine's."),
    ] = None,
    max_model_len: Annotated[
        int | None, typer.Option(min=1, max=10**9, help="Longest context; default: the model's.")
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=10**9, help="Token budget of a step; default: the engine's."),
    ] = None,
    max_num_seqs: Annotated[
        int | None,
        typer.Option(
            min=1, max=10**9, help="Most running requests; counts up to the measured runs'."
        ),
    ] = None,
    kv_cache_dtype: Annotated[str, typer.Option(help="auto, bfloat16, fp8, int8 …")] = "auto",
    quantization: Annotated[
        str | None, typer.Option(help="none, fp8, int8 or int4; default: the checkpoint's own.")
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Tokens a KV block; default: the engine's."),
    ] = None,
    engine: Annotated[str, typer.Option(help="vllm, sglang or trtllm.")] = "vllm",
    engine_version: Annotated[
        str | None, typer.Option(help="The engine's version; default: the newest known.")
    ] = None,
    enforce_eager: Annotated[
        bool, typer.Option("--enforce-eager", help="No CUDA graphs, so no memory for them.")
    ] = False,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Say how many KV blocks fit, line by line, and at which tensor parallelism."""
    from twin.load.capacity_question import CapacityQuestion, answer

    check_writable(json_file, None, inputs=[model])
    question = CapacityQuestion(
        model=model,
        gpu=gpu,
        tp=tp,
        pp=pp,
        gpu_memory_utilization=gpu_memory_utilization,
        max_model_len=max_model_len,
        max_num_batched_tokens=max_num_batched_tokens,
        max_num_seqs=max_num_seqs,
        kv_cache_dtype=kv_cache_dtype,
        enforce_eager=enforce_eager,
        quantization=quantization,
        block_size=block_size,
        engine=engine,
        engine_version=engine_version,
        base=Path.cwd(),
    )
    result = answer(question)
    from twin.report.capacity import print_capacity

    print_capacity(console_for(json_file), result)
    emit_json(result.as_dict(), json_file)
