"""vLLM's own parser and configuration classes on exported files; runs without a GPU.

Runs in an environment with vLLM and without this project: `accept_vllm.py CASES RESULT FLAGS`.
The argument parser alone lets bad values pass (`kv-cache-dtype: fp9`), so the classes that an
engine builds of them are built too.
"""

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

import vllm.platforms
from vllm.platforms.cpu import CpuPlatform

vllm.platforms._current_platform = CpuPlatform()

import vllm as package  # noqa: E402
from vllm.config import CacheConfig, CompilationConfig, ParallelConfig, SchedulerConfig  # noqa: E402
from vllm.engine.arg_utils import AsyncEngineArgs  # noqa: E402
from vllm.entrypoints.common.cli_args import make_arg_parser  # noqa: E402
from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS  # noqa: E402
from vllm.utils.argparse_utils import FlexibleArgumentParser  # noqa: E402

LONGEST = 131072  # of Llama-3.1, where no option says less
SERVER = {"--host", "--port", "--kv-events-config"}  # of targets that start a server in a pod

WORDS = {None: "1", 0: "0", 1: "1", "?": "?", "+": "*", "*": "*"}
"""Words that follow an option, by argparse's `nargs`; as `twin.export.reading.names.arity`."""


def words_of(case):
    """Return the arguments of vLLM's server."""
    if "yaml" in case:
        file = Path(tempfile.mkdtemp()) / "case.yaml"
        file.write_text(case["yaml"], encoding="utf-8")
        return ["--config", str(file)]
    words = case["words"]
    if words[:2] == ["vllm", "serve"]:
        return ["--model", words[2], *words[3:]]
    return words[3:]  # python3 -m dynamo.vllm


def without_server(words):
    """Return the words that are the engine's; the server's own are host, port and events."""
    kept, at = [], 0
    while at < len(words):
        if words[at] in SERVER:
            at += 2
            continue
        kept.append(words[at])
        at += 1
    return kept


def some(**values):
    """Return the values that are set."""
    return {key: value for key, value in values.items() if value is not None}


def build(args):
    """Build what the engine builds of its arguments; bad values raise."""
    if args.quantization is not None and args.quantization not in QUANTIZATION_METHODS:
        raise ValueError(f"unknown quantization {args.quantization}")
    CacheConfig(
        **some(
            block_size=args.block_size,
            gpu_memory_utilization=args.gpu_memory_utilization,
            cache_dtype=args.kv_cache_dtype,
            num_gpu_blocks_override=args.num_gpu_blocks_override,
            enable_prefix_caching=args.enable_prefix_caching,
        )
    )
    longest = args.max_model_len or LONGEST
    budget = args.max_num_batched_tokens
    if budget is None:  # as `EngineArgs` fills it in
        budget = max(8192, args.max_num_seqs or 0)
        budget = max(budget, longest) if args.enable_chunked_prefill is False else budget
    SchedulerConfig(
        max_model_len=longest,
        is_encoder_decoder=False,
        max_num_batched_tokens=budget,
        **some(
            max_num_seqs=args.max_num_seqs,
            long_prefill_token_threshold=args.long_prefill_token_threshold,
            enable_chunked_prefill=args.enable_chunked_prefill,
            policy=args.scheduling_policy,
            scheduler_reserve_full_isl=args.scheduler_reserve_full_isl,
            watermark=args.watermark,
            async_scheduling=args.async_scheduling,
        ),
    )
    ParallelConfig(
        tensor_parallel_size=args.tensor_parallel_size,
        pipeline_parallel_size=args.pipeline_parallel_size,
        data_parallel_size=args.data_parallel_size,
        enable_expert_parallel=args.enable_expert_parallel,
        distributed_executor_backend="mp",
    )
    compilation = args.compilation_config
    given = compilation if isinstance(compilation, dict) else {}
    CompilationConfig(**given, **some(max_cudagraph_capture_size=args.max_cudagraph_capture_size))


def judge(case):
    """Return None if vLLM takes a case, else its first complaint."""
    heard = io.StringIO()
    try:
        with contextlib.redirect_stderr(heard):
            words = without_server(words_of(case))
            parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser(exit_on_error=False))
            args = parser.parse_args(words)
            AsyncEngineArgs.from_cli_args(args)
            build(args)
    except SystemExit:
        return heard.getvalue().rpartition("error: ")[2].strip()[:160]
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
    return None


def main():
    """Write what vLLM says of every case."""
    data = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    results = [{"name": c["name"], "right": c["right"], "says": judge(c)} for c in data["cases"]]
    result = {
        "engine": "vllm", "version": package.__version__, "digests": data["digests"],
        "cases": results,
    }  # fmt: skip
    Path(sys.argv[2]).write_text(json.dumps(result), encoding="utf-8")
    server = make_arg_parser(FlexibleArgumentParser())
    rows = {
        o[2:]: WORDS[a.nargs] for a in server._actions for o in a.option_strings if o[:2] == "--"
    }
    flags = [f"{name} {rows[name]}\n" for name in sorted(rows) if not name.startswith("no-")]
    Path(sys.argv[3]).write_text("".join(flags), encoding="utf-8")


if __name__ == "__main__":
    main()
