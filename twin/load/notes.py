"""Caveats of a scenario, one sentence each: memory, whose scheduler, what step times rest on."""

from hwmodels.given import GivenProfile
from hwmodels.host import host_costs_for
from hwmodels.profile import HardwareProfile
from hwmodels.provenance import durations_rest_on, given_rests_on
from twin.llm.capacity import KvCapacity
from twin.llm.engine_version import parse_version
from twin.scenario import ScenarioFile
from twin.workload.build import LoadedWorkload

VLLM_SCHEDULER_VERSION = (0, 33, 0)
"""The version of vLLM whose scheduler is simulated."""

_PIPELINE_NOTE = (
    "Pipeline parallelism: decisions are held to vLLM 0.33.0's scheduler, times were compared "
    "with no measured run."
)
_FITTED = (
    "Host times and corrections of kernels are fitted to closed-loop runs on H100 and H200; "
    "networks with experts are less certain."
)


def scenario_notes(
    file: ScenarioFile, budget: KvCapacity, workload: LoadedWorkload
) -> tuple[str, ...]:
    """Return the caveats of traces, of the KV budget and of vLLM's scheduler."""
    notes = list(workload.notes)
    if file.policy.num_gpu_blocks is None:
        notes += budget.notes
    version = parse_version(file.engine.version)
    if file.engine.name == "vllm" and version != VLLM_SCHEDULER_VERSION:
        notes.append(
            "Scheduling decisions are those of vLLM 0.33.0; "
            f"version {file.engine.version} may differ in details."
        )
    if file.parallelism.pp > 1:
        notes.append(_PIPELINE_NOTE)
    return tuple(notes)


def step_times_note(
    file: ScenarioFile, layers: HardwareProfile | None, given: GivenProfile | None
) -> str:
    """Return what the durations of steps rest on.

    Args:
        file: the validated input.
        layers: the layer profile that times whole layers; None: kernels are priced one by one.
        given: the profile that the scenario names; None: it names none.
    """
    if layers is None:
        if given is None:
            kernels = durations_rest_on(file.gpu, file.engine.name, file.engine.version)
        else:
            kernels = given_rests_on(given)
        fitted = host_costs_for(file.engine.name, file.engine.version).fitted
        return f"Step times: {kernels}." + (f" {_FITTED}" if fitted else "")
    return (
        f"Step times: one layer of {layers.facts['llm']} measured on this GPU with "
        f"{layers.engine} {layers.engine_version}."
    )
