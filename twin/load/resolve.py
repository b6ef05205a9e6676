"""From a validated `ScenarioFile` to a `Scenario`: look up, check that it fits, read traces."""

from dataclasses import replace
from pathlib import Path

from hwmodels.given import GivenProfile
from hwmodels.profile import HardwareProfile
from hwmodels.spec import GpuSpec
from twin.defaults import ResolvedPolicy, in_pipeline, resolve
from twin.errors import InputError
from twin.llm.arch import ModelArch
from twin.llm.capacity import CapacityQuery, KvCapacity, capacity, smallest_fitting_tp
from twin.llm.engine_version import check_version, default_gpu_memory_utilization, parse_version
from twin.llm.layer_profiles import applies, layer_profile_for
from twin.llm.lowering import Precision
from twin.llm.parallelism import Parallelism
from twin.llm.quantization import kv_dtype_refusal, resolve_dtypes
from twin.load.inputs import Inputs, find_arch, read_inputs
from twin.load.kv_layouts import check_layout, layout_notes
from twin.load.notes import VLLM_SCHEDULER_VERSION, scenario_notes, step_times_note
from twin.load.pools import pool_files
from twin.load.profile_file import find_gpu
from twin.load.trtllm_notes import trtllm_notes
from twin.policy import MAX_GPU_BLOCKS
from twin.scenario import DEFAULT_VERSIONS, Scenario, ScenarioFile, ScenarioPool
from twin.workload.build import LoadedWorkload

_TRTLLM_PRIORITY = (1, 4, 0)


def resolve_scenario(file: ScenarioFile, base: Path, *, where: str) -> Scenario:
    """Return the scenario ready to simulate.

    Args:
        file: the validated input.
        base: folder that relative paths in it start from.
        where: how errors name it.
    """
    find_arch(file.llm, base, f"{where}, llm")
    _check_engine(file, where)
    return resolve_with(file, read_inputs(file, base, where=where), where=where)


def resolve_with(file: ScenarioFile, inputs: Inputs, *, where: str) -> Scenario:
    """Return the scenario of a file whose own files are read already.

    Args:
        file: the validated input; it may differ from the one that `inputs` were read for in
            anything but the network, the profile and the traces that it names.
        inputs: what its files hold.
        where: how errors name it.

    Raises:
        InputError: its parts do not go together.
    """
    _check_engine(file, where)
    arch, workload, given = inputs.arch, inputs.workload, inputs.given
    if file.cluster.pools is None:
        return _resolve(file, arch, workload, where, given)
    pools = tuple(
        ScenarioPool(
            pool.name,
            _resolve(alone, arch, workload, here, given),
            file.cluster.startup_s if pool.startup_s is None else pool.startup_s,
            pool.autoscaler,
        )
        for here, pool, alone in pool_files(file, where)
    )
    notes = dict.fromkeys(note for pool in pools for note in pool.scenario.notes)
    return replace(pools[0].scenario, file=file, notes=tuple(notes), pools=pools)


def _resolve(
    file: ScenarioFile,
    arch: ModelArch,
    workload: LoadedWorkload,
    where: str,
    given: GivenProfile | None,
) -> Scenario:
    """Return the scenario of replicas of one kind."""
    gpu = find_gpu(file, given, f"{where}, gpu")
    _check_parallelism(file, arch, where)
    utilization = default_gpu_memory_utilization(
        file.engine.name,
        file.engine.version,
        gpu.visible_memory_bytes,
        file.parallelism.tp * file.parallelism.pp,
    )
    policy = resolve(
        file.policy,
        gpu,
        file.engine.version,
        arch.max_position,
        utilization,
        file.engine.name,
    )
    if file.parallelism.pp > 1:
        policy = in_pipeline(policy, file.engine.version, experts=arch.moe is not None, where=where)
    query = capacity_query(file, arch, gpu, policy)
    budget = capacity(query)
    blocks = _num_gpu_blocks(file, query, budget, where)
    if file.engine.name == "vllm":
        _check_context_fits(policy, query, blocks, where)
    refusal = kv_dtype_refusal(file.policy.kv_cache_dtype, arch, gpu.compute_capability)
    if refusal is not None:
        raise InputError(refusal, where=f"{where}: policy.kv_cache_dtype", remedy="choose another")
    dtypes = resolve_dtypes(
        arch, file.policy.quantization, file.policy.kv_cache_dtype, "fp8" in gpu.flops_per_s
    )
    layers = None if given else _layer_profile(file, arch, gpu, Precision(*dtypes))
    check_layout(file, layers, where)
    return Scenario(
        file=file,
        arch=arch,
        gpu=gpu,
        policy=policy,
        precision=Precision(*dtypes),
        capacity=budget,
        num_gpu_blocks=blocks,
        workload=workload,
        notes=(
            *scenario_notes(file, budget, workload),
            *trtllm_notes(file, policy, workload, blocks),
            step_times_note(file, layers, given),
            *layout_notes(file, given),
        ),
        layer_profile=layers,
        profile=given,
    )


def _check_engine(file: ScenarioFile, where: str) -> None:
    name, version = file.engine.name, file.engine.version
    check_version(version, f"{where}, engine.version")
    parsed = parse_version(version)
    if name != "vllm" and parsed == VLLM_SCHEDULER_VERSION:
        raise InputError(
            f"{version} is a version of vLLM, not of {name}",
            where=f"{where}, engine.version",
            remedy=f"give one of {name}, for example {DEFAULT_VERSIONS[name]}",
        )
    priority = file.policy.scheduling_policy == "priority"
    if name == "trtllm" and priority and parsed and parsed < _TRTLLM_PRIORITY:
        first = ".".join(map(str, _TRTLLM_PRIORITY))
        raise InputError(
            f"TensorRT-LLM has no scheduling_policy priority before {first}",
            where=f"{where}, policy.scheduling_policy",
            remedy=f"set engine.version to {first} or later, or use fcfs",
        )


def _check_parallelism(file: ScenarioFile, arch: ModelArch, where: str) -> None:
    spec = file.parallelism
    if spec.pp != 1 and file.engine.name != "vllm":
        raise InputError(
            f"parallelism.pp {spec.pp} is not simulated for {file.engine.name}",
            where=where,
            remedy="use tp",
        )
    if spec.pp != 1 and spec.dp != 1 and arch.moe is not None:
        raise InputError(
            f"parallelism.pp {spec.pp} with dp {spec.dp} is not simulated for a network with "
            "experts",
            where=where,
            remedy="use tp, or cluster.replicas instead of dp",
        )
    if spec.dp != 1 and file.engine.name != "vllm":
        raise InputError(
            f"parallelism.dp {spec.dp} is not simulated for {file.engine.name}",
            where=where,
            remedy="use tp, and cluster.replicas for data parallelism",
        )
    if spec.dp != 1 and spec.ep not in (1, spec.tp * spec.dp):
        raise InputError(
            f"parallelism.ep {spec.ep} with tp {spec.tp} and dp {spec.dp}",
            where=where,
            remedy=f"vLLM spreads experts over all of them: set ep to {spec.tp * spec.dp} or 1",
        )
    try:
        Parallelism(tp=spec.tp, pp=spec.pp, dp=spec.dp, ep=spec.ep).validate(arch)
    except InputError as error:
        raise InputError(
            error.problem,
            where=f"{where}, parallelism.{error.problem.split()[0]}",
            remedy=error.remedy,
        ) from None


def capacity_query(
    file: ScenarioFile, arch: ModelArch, gpu: GpuSpec, policy: ResolvedPolicy
) -> CapacityQuery:
    """Return the question the capacity model is asked for a scenario."""
    return CapacityQuery(
        arch=arch,
        total_memory_bytes=gpu.visible_memory_bytes,
        engine=file.engine.name,
        engine_version=file.engine.version,
        tp=file.parallelism.tp,
        pp=file.parallelism.pp,
        ep=_expert_shares(file, arch),
        dp=file.parallelism.dp,
        gpu_memory_utilization=policy.gpu_memory_utilization,
        max_model_len=policy.max_model_len,
        max_num_batched_tokens=policy.max_num_batched_tokens,
        max_num_seqs=file.policy.max_num_seqs,
        block_size=policy.block_size,
        quantization=file.policy.quantization,
        kv_cache_dtype=file.policy.kv_cache_dtype,
        enforce_eager=file.policy.enforce_eager,
    )


def _expert_shares(file: ScenarioFile, arch: ModelArch) -> int:
    """Over how many GPUs the bytes of the experts are shared out.

    Data-parallel ranks that do not hold whole experts hold a slice of each: as many bytes.
    """
    spec = file.parallelism
    cut = arch.moe is not None and spec.dp > 1 and spec.ep == 1
    return spec.tp * spec.dp if cut else spec.ep


def _num_gpu_blocks(
    file: ScenarioFile, query: CapacityQuery, budget: KvCapacity, where: str
) -> int:
    if file.policy.num_gpu_blocks is not None:
        return file.policy.num_gpu_blocks
    if budget.kv_blocks > MAX_GPU_BLOCKS:
        raise InputError(
            f"{budget.kv_blocks:,} KV blocks fit, more than the {MAX_GPU_BLOCKS:,} simulated",
            where=where,
            remedy="set policy.num_gpu_blocks or a larger policy.block_size",
        )
    if budget.kv_blocks > 1:
        return budget.kv_blocks
    tp = smallest_fitting_tp(query)
    remedy = f"set parallelism.tp to {tp}" if tp else "use a larger GPU or quantization"
    raise InputError(
        f"{query.arch.name} does not fit on {query.tp} x {file.gpu}: "
        "no memory is left for the KV cache",
        where=where,
        remedy=remedy,
    )


def _check_context_fits(
    policy: ResolvedPolicy, query: CapacityQuery, blocks: int, where: str
) -> None:
    """One request of the longest context must fit, as vLLM demands at start-up."""
    size, usable = policy.block_size, blocks - 1
    if usable < 1:
        raise InputError(
            f"{blocks} KV block leaves none to use (one is the engine's null block)",
            where=f"{where}, policy.num_gpu_blocks",
            remedy="give at least 2",
        )
    needed = -(-policy.max_model_len // size)
    if needed > usable:
        tp = smallest_fitting_tp(query) if policy.given.num_gpu_blocks is None else None
        larger = f", or parallelism.tp to {tp}" if tp else ""
        raise InputError(
            f"one request of max_model_len {policy.max_model_len} needs {needed} KV blocks, "
            f"{usable} can be used",
            where=where,
            remedy=f"set policy.max_model_len to at most {usable * size}{larger}",
        )


def _layer_profile(
    file: ScenarioFile, arch: ModelArch, gpu: GpuSpec, precision: Precision
) -> HardwareProfile | None:
    """Return the shipped layer profile that speaks of this deployment."""
    spec, engine = file.parallelism, file.engine
    profile = layer_profile_for(gpu.name, arch, engine.name, engine.version, spec.tp)
    if profile is None or not applies(profile, precision, eager=file.policy.enforce_eager):
        return None
    # Experts were measured whole.
    return None if arch.moe is not None and spec.ep != spec.tp * spec.dp else profile
