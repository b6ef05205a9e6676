"""`Deployment`: engines of one kind and what the capacity model says of them, fitting or not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.answers.setup import Setup, problem_of
from hwmodels.spec import GpuSpec
from twin.defaults import ResolvedPolicy, in_pipeline, resolve
from twin.errors import InputError
from twin.llm.arch import ModelArch
from twin.llm.capacity import CapacityQuery, KvCapacity, capacity
from twin.llm.engine_version import default_gpu_memory_utilization
from twin.llm.parallelism import tp_divides
from twin.llm.quantization import KV_DTYPE_ENGINES, kv_dtype_refusal
from twin.load.inputs import Inputs
from twin.load.pools import pool_files
from twin.load.profile_file import find_gpu
from twin.load.resolve import capacity_query
from twin.scenario import ScenarioFile

TP_SIZES = (1, 2, 4, 8)

_ALIKE = frozenset({"bfloat16", "float16", "fp8_e4m3", "fp8_e5m2"})
"""KV dtypes that take the bytes of `auto` or `fp8`."""


def gpu_title(name: str) -> str:
    """Return a GPU as people write it: `H100` of `h100_sxm`."""
    return name.removesuffix("_sxm").replace("_", " ").upper()


@dataclass(frozen=True, slots=True)
class Deployment:
    """Engines of one kind; unlike a `Scenario` it need not fit.

    Attributes:
        file: the scenario that these engines alone would have.
        arch: the network.
        gpu: the GPU.
        where: how errors name it.
    """

    file: ScenarioFile
    arch: ModelArch
    gpu: GpuSpec
    where: str

    @property
    def tp(self) -> int:
        """Tensor parallel ranks, as the scenario has them."""
        return self.file.parallelism.tp

    @property
    def gpus(self) -> int:
        """GPUs of one engine."""
        spec = self.file.parallelism
        return spec.tp * spec.pp * spec.dp

    @property
    def gpu_name(self) -> str:
        """The GPU as people write it."""
        return gpu_title(self.gpu.name)

    def policy(self, tp: int | None = None) -> ResolvedPolicy:
        """Return the policy with the engine's defaults filled in, at a TP."""
        file, spec = self.file, self._parallel(tp).parallelism
        share = default_gpu_memory_utilization(
            file.engine.name, file.engine.version, self.gpu.visible_memory_bytes, spec.tp * spec.pp
        )
        longest, engine = self.arch.max_position, file.engine
        found = resolve(file.policy, self.gpu, engine.version, longest, share, engine.name)
        if spec.pp == 1:
            return found
        experts = self.arch.moe is not None
        return in_pipeline(found, engine.version, experts=experts, where=self.where)

    def query(self, tp: int | None = None, **changes: Any) -> CapacityQuery:
        """Return what the capacity model is asked at a TP, some of its fields changed."""
        asked = capacity_query(self._parallel(tp), self.arch, self.gpu, self.policy(tp))
        return replace(asked, **changes)

    def capacity(self, tp: int | None = None, **changes: Any) -> KvCapacity:
        """Return the capacity of one GPU at a TP.

        Raises:
            InputError: the network cannot be cut so.
        """
        return capacity(self.query(tp, **changes))

    def by_tp(self) -> dict[int, KvCapacity]:
        """Return the capacity at 1, 2, 4, 8 ranks and the scenario's own, where they divide."""
        found = {}
        for tp in sorted({*TP_SIZES, self.tp}):
            if tp != self.tp and not tp_divides(self.arch, tp):
                continue
            try:
                found[tp] = self.capacity(tp)
            except InputError:
                if tp == self.tp:
                    raise
        return found

    def held(self, found: KvCapacity) -> int:
        """Return the blocks that requests can hold: those the scenario names, else those that fit.

        vLLM keeps one of them as its null block.
        """
        blocks = self.file.policy.num_gpu_blocks or found.kv_blocks
        return max(0, blocks - 1) if self.file.engine.name == "vllm" else blocks

    def kv_dtypes(self) -> list[str]:
        """Return the KV dtypes that engine, network and GPU can have, one of those of equal size.

        `auto` comes first, then the scenario's own, whatever it is.
        """
        own, engine = self.file.policy.kv_cache_dtype, self.file.engine.name
        compute = self.gpu.compute_capability
        able = [
            dtype
            for dtype, engines in KV_DTYPE_ENGINES.items()
            if engine in engines
            and dtype not in _ALIKE
            and kv_dtype_refusal(dtype, self.arch, compute) is None
        ]
        return list(dict.fromkeys(["auto", own, *able]))

    def _parallel(self, tp: int | None) -> ScenarioFile:
        spec = self.file.parallelism
        if tp is None or tp == spec.tp:
            return self.file
        # Experts stay spread in the same way: over all ranks, or not at all.
        experts = spec.ep if spec.ep == 1 else max(1, spec.ep * tp // spec.tp)
        cut = spec.model_copy(update={"tp": tp, "ep": experts})
        return self.file.model_copy(update={"parallelism": cut})


def deployments(setup: Setup) -> tuple[Mapping[str, Deployment], Inputs]:
    """Return the kinds of engines of a setup by pool name ("" where it has none), and its inputs.

    Raises:
        InputError: a name is unknown, or a file cannot be used.
    """
    file, inputs = setup.inputs()
    where = setup.where
    files = {"": (where, file)}
    if file.cluster.pools is not None:
        files = {pool.name: (here, alone) for here, pool, alone in pool_files(file, where)}
    found = {
        name: Deployment(alone, inputs.arch, find_gpu(alone, inputs.given, here), here)
        for name, (here, alone) in files.items()
    }
    return found, inputs


def problem_but_for_room(setup: Setup) -> str:
    """Return why a setup cannot be looked at, in one line; empty: it can, even if it does not fit.

    What does not fit cannot be simulated, but how far it is from fitting can be shown.
    """
    problem = problem_of(setup)
    if not problem:
        return ""
    try:
        found, _ = deployments(setup)
        fits = all(one.capacity().fits for one in found.values())
    except InputError:
        return problem
    return problem if fits else ""
