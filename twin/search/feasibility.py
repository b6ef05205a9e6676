"""Which knobs have an effect in a problem, and why a candidate cannot be, before simulating."""

from collections.abc import Callable

from hwmodels.gpus import GPUS
from twin.errors import InputError
from twin.llm.quality import kv_error, weight_error
from twin.scenario import ScenarioFile
from twin.search.candidates import file_of, gpus_of, value_in
from twin.search.knob import Candidate
from twin.search.problem import SearchProblem

_Check = Callable[[SearchProblem, ScenarioFile], str | None]

_KV, _WEIGHTS = "policy.kv_cache_dtype", "policy.quantization"


def check(problem: SearchProblem, candidate: Candidate) -> str | None:
    """Return why a candidate cannot be, in one line; None: nothing speaks against simulating it.

    Args:
        problem: what is searched.
        candidate: dotted keys to values.
    """
    try:
        file = file_of(problem, candidate)
    except InputError as error:
        return error.problem
    for rule in _RULES:
        reason = rule(problem, file)
        if reason is not None:
            return reason
    return None


def _within_gpus(problem: SearchProblem, file: ScenarioFile) -> str | None:
    gpus, most = gpus_of(file), problem.limits.gpus
    return f"{gpus} GPUs in all are more than the {most} allowed" if gpus > most else None


def _kv_error(problem: SearchProblem, file: ScenarioFile) -> str | None:
    dtype, most = file.policy.kv_cache_dtype, problem.limits.max_kv_error
    error = kv_error(dtype)
    if error <= most or dtype == value_in(problem.file, _KV):
        return None
    return f"KV in {dtype} loses {error:.1%}, more than the {most:.1%} allowed"


def _weight_error(problem: SearchProblem, file: ScenarioFile) -> str | None:
    name, most = file.policy.quantization, problem.limits.max_weight_error
    error = weight_error(name)
    if error <= most or name == value_in(problem.file, _WEIGHTS):
        return None
    return f"weights in {name} lose {error:.1%}, more than the {most:.1%} allowed"


def _trtllm_fp8(problem: SearchProblem, file: ScenarioFile) -> str | None:  # noqa: ARG001
    """TensorRT-LLM has FP8 from Ada on (its support matrix); vLLM stores it on Ampere as well."""
    gpu = GPUS.get(file.gpu)
    if gpu is None or "fp8" in gpu.flops_per_s or file.engine.name != "trtllm":
        return None
    if file.policy.quantization != "fp8" and not file.policy.kv_cache_dtype.startswith("fp8"):
        return None
    return f"TensorRT-LLM has no FP8 on {gpu.title}, which has no units for it"


def _whole_pages(problem: SearchProblem, file: ScenarioFile) -> str | None:  # noqa: ARG001
    """SGLang's scheduler stops when a chunk is no whole number of pages."""
    chunk, page = file.policy.max_num_batched_tokens, file.policy.sglang.page_size
    if file.engine.name != "sglang" or chunk is None or chunk % page == 0:
        return None
    return f"a chunk of {chunk} tokens is no whole number of pages of {page}"


_RULES: tuple[_Check, ...] = (
    _within_gpus,
    _kv_error,
    _weight_error,
    _trtllm_fp8,
    _whole_pages,
)
