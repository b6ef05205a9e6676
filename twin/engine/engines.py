"""From a scenario to the parts of its engine: scheduler, step timer, admission, host costs."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from hwmodels.cost import cost_model_for, given_cost_model
from hwmodels.host import HostCosts, corrections_for, host_costs_for
from hwmodels.measured import MeasuredCostModel
from hwmodels.ops import CostModel
from hwmodels.scaled import THROTTLED, Corrections, RememberingCostModel, ScaledCostModel
from twin.engine.kv_layout import laid_out
from twin.llm.arch import ModelArch
from twin.llm.cuda_graphs import capture_sizes
from twin.llm.engine_version import parse_version
from twin.llm.flops import attention_parity_tokens
from twin.llm.fusions import norms_in_all_reduce
from twin.llm.stages import WHOLE, Stage
from twin.llm.step_time import StepTimer
from twin.paging.eviction.setup import DEFAULT_TTL_S
from twin.request import Request
from twin.scenario import Scenario
from twin.scheduling import VllmV1Scheduler
from twin.scheduling.base import QuietScheduler
from twin.scheduling.limits import SchedulerLimits
from twin.scheduling.sglang import SglangLimits, SglangScheduler
from twin.scheduling.trtllm import (
    TrtllmLimits,
    TrtllmScheduler,
    trtllm_capture_sizes,
    trtllm_defaults,
)

# From here on TensorRT-LLM decides as in autumn 2026 (`twin.scheduling.trtllm.limits.STRATA`).
_TRTLLM_MAIN = (1, 4, 0)

_LONG_STREAM_INTERVAL = 10
_ONE_PROCESS_BEFORE = (1, 2, 0)

# SGLang's largest captured decode batch by GPU memory in GB, for tp below 4 and from 4 on.
_SGLANG_GRAPHS = (
    (20, 8, 8), (35, 48, 160), (60, 32, 160), (160, 256, 512), (float("inf"), 512, 512),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServingEngine:
    """How a scenario becomes one engine.

    Attributes:
        scheduler: a fresh scheduler of one replica, with the simulated seconds that eviction by
            time looks at.
        accepts: whether the server takes a request; it answers 400 otherwise.
        capture_sizes: batch sizes captured as CUDA graphs.
        steps_with_prefill_are_captured: in pieces at least; else they run eagerly.
    """

    scheduler: Callable[[Scenario, Callable[[], float]], QuietScheduler]
    accepts: Callable[[Scenario], Callable[[Request], bool]]
    capture_sizes: Callable[[Scenario], tuple[int, ...]]
    steps_with_prefill_are_captured: bool = True


def serving_engine(scenario: Scenario) -> ServingEngine:
    """Return the engine that a scenario names."""
    return SERVING_ENGINES[scenario.file.engine.name]


@dataclass(frozen=True, slots=True)
class EngineCosts:
    """What the seconds of a run rest on: host costs, and who prices operations."""

    host: HostCosts
    cost_model: CostModel


def engine_costs(scenario: Scenario, *, charge_layout: bool = True) -> EngineCosts:
    """Return the costs of a scenario's engine on its GPU.

    `charge_layout`: what its KV layout costs is charged; else as if KV lay as it was measured.
    """
    engine = scenario.file.engine
    host = host_costs_for(engine.name, engine.version)
    base = base_cost_model(scenario)
    model = corrected(scenario, base, corrections_for(engine.name), host)
    return EngineCosts(host, laid_out(scenario, model) if charge_layout else model)


def corrected(
    scenario: Scenario, base: CostModel, corrections: Corrections, host: HostCosts
) -> CostModel:
    """Return a cost model with the corrections of a fit.

    They say what measured tables leave out; the roofline has its own efficiencies. With
    `enforce_eager` nothing is compiled either, and an operation takes as long to launch as
    was measured on the GPU's host, or as a compiled one if that is longer.
    """
    priced_by = base.base if isinstance(base, RememberingCostModel) else base
    launch_s, compiled = host.eager_op_s, not scenario.policy.given.enforce_eager
    if not isinstance(priced_by, MeasuredCostModel):
        return ScaledCostModel(base, Corrections(), launch_s, compiled=compiled)
    if priced_by.gpu.architecture not in THROTTLED:
        corrections = replace(corrections, compute=1.0)
    # These tables begin where those of bf16 do, and our own hold no launch.
    if priced_by.fp8_kernel == "fp8_block" or scenario.profile is not None:
        corrections = replace(corrections, product_overlap_s=0.0)
    return ScaledCostModel(base, corrections, launch_s, compiled=compiled)


def front_end_event_s(scenario: Scenario, host: HostCosts) -> float:
    """Return what a token costs the server's process; 0: it never limits.

    Of TensorRT-LLM's responses only a few are left with a long stream interval, and workers take
    them off the process. Runs of 1.0.0rc3 level off at 9.2 thousand tokens a second; those of
    1.2.0rc6 and 1.3.0rc1 pass it, and their time to first token shows no such queue.
    """
    given = scenario.policy.given.trtllm
    if scenario.file.engine.name != "trtllm":
        return host.front_end_event_s
    version = parse_version(scenario.file.engine.version)
    newer = version is not None and version >= _ONE_PROCESS_BEFORE
    relieved = given.num_postprocess_workers or given.stream_interval >= _LONG_STREAM_INTERVAL
    relieved = relieved or newer
    return 0.0 if relieved else host.front_end_event_s


def base_cost_model(scenario: Scenario) -> CostModel:
    """Return who prices operations on a scenario's GPU, before any factor of a fit.

    An engine without tables of its own takes vLLM's: the same networks on the same GPU.
    """
    engine, gpu = scenario.file.engine, scenario.gpu
    if scenario.profile is not None:
        model: CostModel = given_cost_model(scenario.profile)
    else:
        model = cost_model_for(gpu.name, engine.name, engine.version)
    if not isinstance(model, MeasuredCostModel) and engine.name != "vllm":
        model = cost_model_for(gpu.name)
    if isinstance(model, MeasuredCostModel) and scenario.arch.scale_block is not None:
        # vLLM's tables of block-scaled dense products were taken without CUDA graphs: below some
        # hundred tokens they hold the launch (55-70 us on Hopper, whatever the shape), so
        # products scaled by tensor stand in.
        dense = "fp8" if model.profile.engine == "vllm" else "fp8_block"
        return MeasuredCostModel(
            model.profile, gpu, fp8_kernel=dense, fp8_expert_kernel="fp8_block"
        )
    return model


def step_timer(scenario: Scenario, costs: EngineCosts, stage: Stage | None = None) -> StepTimer:
    """Return the durations of one replica's forward passes.

    `stage`: the pipeline stage to time; None: the whole network.
    """
    stage = stage or Stage(scenario.arch, WHOLE)
    spec, given = scenario.file.parallelism, scenario.policy.given
    engine = serving_engine(scenario)
    return StepTimer(
        costs.cost_model,
        stage.arch,
        scenario.precision,
        tp=spec.tp,
        ep=spec.ep,
        capture_sizes=engine.capture_sizes(scenario),
        eager=given.enforce_eager,
        no_full_graph_s=_no_full_graph_s(stage.arch, costs.host),
        gap_s=costs.host.gap_s,
        gap_per_seq_s=costs.host.gap_per_seq_s,
        full_decode_graph=given.cudagraph_mode != "piecewise",
        mixed_graphs=engine.steps_with_prefill_are_captured,
        fused_norms=norms_in_all_reduce(scenario.file.engine.name, scenario.arch.name, spec.tp),
        ends=stage.ends,
    )


def _no_full_graph_s(arch: ModelArch, host: HostCosts) -> float:
    moe = arch.moe
    experts_s = host.no_full_graph_moe_layer_s * moe.num_moe_layers if moe else 0.0
    return host.no_full_graph_layer_s * arch.num_layers + experts_s


def vllm_limits(scenario: Scenario) -> SchedulerLimits:
    """Return what vLLM's scheduler must respect."""
    policy, given = scenario.policy, scenario.policy.given
    return SchedulerLimits(
        max_num_seqs=policy.max_num_seqs,
        max_num_batched_tokens=policy.max_num_batched_tokens,
        max_model_len=policy.max_model_len,
        block_size=policy.block_size,
        num_gpu_blocks=scenario.num_gpu_blocks,
        enable_prefix_caching=given.enable_prefix_caching,
        enable_chunked_prefill=given.enable_chunked_prefill,
        long_prefill_token_threshold=given.long_prefill_token_threshold,
        scheduling_policy=given.scheduling_policy,
        scheduler_reserve_full_isl=given.scheduler_reserve_full_isl,
        watermark=given.watermark,
        async_scheduling=policy.async_scheduling,
        eviction=given.eviction,
        eviction_ttl_s=given.eviction_ttl_s or DEFAULT_TTL_S,
        attention_parity_tokens=attention_parity_tokens(scenario.arch),
        pipeline_stages=scenario.file.parallelism.pp,
    )


def _vllm_accepts(scenario: Scenario) -> Callable[[Request], bool]:
    """vLLM's server answers 400 to a request that asks for more than the context."""
    limits = vllm_limits(scenario)

    def accepts(request: Request) -> bool:
        asked = request.prompt_tokens + request.max_tokens
        return asked <= limits.max_model_len and limits.fits(request)

    return accepts


def _vllm_capture_sizes(scenario: Scenario) -> tuple[int, ...]:
    policy = scenario.policy
    return capture_sizes(
        policy.max_num_seqs,
        policy.max_num_batched_tokens,
        datacenter_blackwell=scenario.gpu.compute_capability == (10, 0),
        largest_captured=policy.given.max_cudagraph_capture_size,
    )


def trtllm_limits(scenario: Scenario) -> TrtllmLimits:
    """Return what TensorRT-LLM's scheduler must respect."""
    policy, given = scenario.policy, scenario.policy.given.trtllm
    major, minor = scenario.gpu.compute_capability
    return trtllm_defaults(
        policy.max_model_len,
        scenario.num_gpu_blocks,
        stratum=_trtllm_stratum(scenario),
        mla=scenario.arch.mla is not None,
        sm=10 * major + minor,
        max_batch_size=policy.max_num_seqs,
        max_num_tokens=policy.max_num_batched_tokens,
        tokens_per_block=given.tokens_per_block,
        capacity_scheduler_policy=given.capacity_scheduler_policy,
        enable_chunked_prefill=given.enable_chunked_prefill,
        enable_block_reuse=policy.given.enable_prefix_caching,
        overlap=policy.async_scheduling,
        batch_wait_timeout_iters=given.batch_wait_timeout_iters,
        batch_wait_max_tokens_ratio=given.batch_wait_max_tokens_ratio,
        cuda_graph_dummy_block=given.cuda_graph_padding,
        waiting_queue=policy.given.scheduling_policy,
    )


def _trtllm_stratum(scenario: Scenario) -> str:
    version = parse_version(scenario.file.engine.version)
    return "main" if version is None or version >= _TRTLLM_MAIN else "early"


def _trtllm_accepts(scenario: Scenario) -> Callable[[Request], bool]:
    limits = trtllm_limits(scenario)

    def accepts(request: Request) -> bool:
        asked = request.prompt_tokens + request.max_tokens
        return asked <= limits.max_seq_len and limits.fits(request)

    return accepts


def _trtllm_capture_sizes(scenario: Scenario) -> tuple[int, ...]:
    given = scenario.policy.given.trtllm
    return trtllm_capture_sizes(
        given.cuda_graph_max_batch_size, given.cuda_graph_padding, _trtllm_stratum(scenario)
    )


def sglang_limits(scenario: Scenario) -> SglangLimits:
    """Return what SGLang's scheduler must respect."""
    policy, given = scenario.policy, scenario.policy.given.sglang
    pool = scenario.num_gpu_blocks * policy.block_size
    by_pool = min(max(int(pool / policy.max_model_len * 512), 2048), 4096)
    return SglangLimits(
        max_total_num_tokens=pool,
        context_length=policy.max_model_len,
        max_running_requests=max(1, min(policy.given.max_num_seqs or by_pool, pool // 2)),
        page_size=policy.block_size,
        chunked_prefill_size=policy.max_num_batched_tokens,
        max_prefill_tokens=given.max_prefill_tokens or 16384,
        schedule_policy=given.schedule_policy,
        radix_eviction_policy=given.radix_eviction_policy,
        schedule_conservativeness=given.schedule_conservativeness,
        disable_radix_cache=not policy.given.enable_prefix_caching,
        enable_mixed_chunk=given.enable_mixed_chunk,
        enable_priority_scheduling=policy.given.scheduling_policy == "priority",
        overlap=policy.async_scheduling,
    )


def _sglang_accepts(scenario: Scenario) -> Callable[[Request], bool]:
    return sglang_limits(scenario).fits


def _sglang_capture_sizes(scenario: Scenario) -> tuple[int, ...]:
    """1, 2, 4, 8, 12, then by 8 to 256, by 16 to 496 and by 32 (SGLang 0.5.23)."""
    tp, given = scenario.file.parallelism.tp, scenario.policy.given.sglang
    memory_gb = scenario.gpu.visible_memory_bytes / 1e9
    few, many = next(sizes for limit, *sizes in _SGLANG_GRAPHS if memory_gb < limit)
    largest = given.cuda_graph_max_bs or (few if tp < 4 else many)
    largest = min(largest, scenario.policy.given.max_num_seqs or largest)
    ladder = (1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 497, 16), *range(512, 8193, 32))
    return tuple(sorted({size for size in ladder if size <= largest} | {largest}))


SERVING_ENGINES: dict[str, ServingEngine] = {
    "vllm": ServingEngine(
        lambda scenario, clock: VllmV1Scheduler(vllm_limits(scenario), clock),
        _vllm_accepts,
        _vllm_capture_sizes,
    ),
    "sglang": ServingEngine(
        lambda scenario, _: SglangScheduler(sglang_limits(scenario)),
        _sglang_accepts,
        _sglang_capture_sizes,
        steps_with_prefill_are_captured=False,
    ),
    "trtllm": ServingEngine(
        lambda scenario, _: TrtllmScheduler(trtllm_limits(scenario)),
        _trtllm_accepts,
        _trtllm_capture_sizes,
        steps_with_prefill_are_captured=False,
    ),
}
"""Engines that are simulated, by name."""
