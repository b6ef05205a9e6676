"""The scenario: what a user writes (`ScenarioFile`) and what is simulated (`Scenario`)."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from hwmodels.given import GivenProfile
from hwmodels.profile import HardwareProfile
from hwmodels.spec import GpuSpec
from twin.cluster import AutoscalerSpec, ClusterSpec, ParallelismSpec
from twin.defaults import ResolvedPolicy
from twin.llm.arch import ModelArch
from twin.llm.capacity import KvCapacity
from twin.llm.lowering import Precision
from twin.policy import EnginePolicy
from twin.recording import Recording, RecordingSpec
from twin.strict import Strict
from twin.workload.build import LoadedWorkload
from twin.workload.clients_spec import ClientsSpec
from twin.workload.limits import Duration
from twin.workload.spec import WorkloadSpec

SCENARIO_SCHEMA_VERSION = 1

EngineName = Literal["vllm", "sglang", "trtllm"]

DEFAULT_VERSIONS: dict[str, str] = {"vllm": "0.33.0", "sglang": "0.5.23", "trtllm": "1.4.0"}
"""Of each engine the version whose rules are simulated; of TensorRT-LLM the first with all."""


class EngineSpec(Strict):
    """The serving engine and its version; left out, the version is the engine's default one."""

    name: EngineName = "vllm"
    version: str = Field(DEFAULT_VERSIONS["vllm"], description="as its package names it")

    @model_validator(mode="before")
    @classmethod
    def _own_version(cls, data: Any) -> Any:
        """Take the default of the engine that is named, not vLLM's."""
        if isinstance(data, dict) and "version" not in data:
            own = DEFAULT_VERSIONS.get(str(data.get("name", "vllm")))
            return data if own is None else {**data, "version": own}
        return data


class SloSpec(Strict):
    """The service-level objective that goodput counts by."""

    ttft_s: Annotated[float, Field(gt=0)] | None = Field(None, description="time to first token")
    tpot_s: Annotated[float, Field(gt=0)] | None = Field(None, description="time per output token")
    percentile: Annotated[float, Field(gt=0, le=100)] = 99.0


class KvLayoutSpec(Strict):
    """Where the KV cache lies in GPU memory; the default costs nothing."""

    pools: Literal["per_layer", "cross_layer"] = Field(
        "per_layer", description="a tensor a layer, or blocks that hold all layers"
    )
    order: Literal["compact", "scattered"] = Field(
        "compact", description="blocks in use lie side by side, or all over the pool"
    )

    @property
    def costs_nothing(self) -> bool:
        """Whether kernels were measured over KV that lies so."""
        return self == KvLayoutSpec()


class ScenarioFile(Strict):
    """One YAML file: a trace, a network, a GPU and an engine configuration."""

    schema_version: Literal[1]
    name: str = "scenario"
    description: str = ""
    llm: str = Field(description="a name of `twin models`, or the path of a config.json")
    gpu: str = Field(description="a name of `twin gpus`, or of the profile's own GPU")
    profile: str | None = Field(
        None, description="path of a profile that prices kernels instead of the shipped one"
    )
    engine: EngineSpec = EngineSpec()
    parallelism: ParallelismSpec = ParallelismSpec()
    cluster: ClusterSpec = ClusterSpec()
    policy: EnginePolicy = EnginePolicy()
    kv_layout: KvLayoutSpec = KvLayoutSpec()
    workload: WorkloadSpec
    clients: ClientsSpec | None = Field(
        None, description="who waits how long, and tries again; none: everybody waits for ever"
    )
    slo: SloSpec = SloSpec()
    horizon_s: Duration | None = Field(
        None, description="stop the simulation here; default: run until all is served"
    )
    recording: Recording = RecordingSpec()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario with every name looked up and every file read: `simulate` needs nothing else.

    Attributes:
        file: what the user wrote, overrides applied.
        arch: the network.
        gpu: the GPU.
        policy: the policy with the engine's defaults filled in.
        precision: dtypes of weights, products and KV cache.
        capacity: the memory budget (its block count applies unless the policy names one).
        num_gpu_blocks: KV blocks of one replica, the null block included.
        workload: the workload with its traces read.
        notes: caveats a forecast from this scenario carries.
        layer_profile: measured layers of this network on this GPU; None: operations are priced
            one by one.
        profile: what prices operations instead of the shipped measurements; None: those.
        pools: the replicas by kind, where `cluster.pools` says so; the attributes above are then
            those of the first.
    """

    file: ScenarioFile
    arch: ModelArch
    gpu: GpuSpec
    policy: ResolvedPolicy
    precision: Precision
    capacity: KvCapacity
    num_gpu_blocks: int
    workload: LoadedWorkload
    notes: tuple[str, ...] = ()
    layer_profile: HardwareProfile | None = None
    profile: GivenProfile | None = None
    pools: "tuple[ScenarioPool, ...]" = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for reports: the file with resolved policy values."""
        data = self.file.model_dump(mode="json")
        for key in ("clients", "profile"):
            if getattr(self.file, key) is None:
                del data[key]
        if self.file.kv_layout.costs_nothing:
            del data["kv_layout"]
        if self.profile is not None:
            data["profile_sha256"] = self.profile.sha256
        data["policy"] = self.policy.as_dict()
        data["warmup_requests"] = self.workload.warmup_requests
        if self.pools:  # then these are said of each pool
            del data["cluster"]["replicas"], data["cluster"]["autoscaler"]
        for pool, written in zip(self.pools, data["cluster"]["pools"] or (), strict=True):
            file = pool.scenario.file
            written |= {"name": pool.name, "gpu": file.gpu, "startup_s": pool.startup_s}
            written["parallelism"] = file.parallelism.model_dump(mode="json")
            written["policy"] = pool.scenario.policy.as_dict()
        return data


@dataclass(frozen=True, slots=True)
class ScenarioPool:
    """Replicas of one kind.

    Attributes:
        name: how reports call it.
        scenario: all that a scenario of these replicas alone would be.
        startup_s: from the decision to start one until it takes requests.
        autoscaler: how many there are later; None: as many as at the start.
    """

    name: str
    scenario: Scenario
    startup_s: float
    autoscaler: AutoscalerSpec | None = None

    @property
    def replicas(self) -> int:
        """How many there are at the start."""
        return self.scenario.file.cluster.replicas


def pools_of(scenario: Scenario) -> tuple[ScenarioPool, ...]:
    """Return the pools of a scenario; one that names none is its only one."""
    cluster = scenario.file.cluster
    alone = ScenarioPool("", scenario, cluster.startup_s, cluster.autoscaler)
    return scenario.pools or (alone,)
