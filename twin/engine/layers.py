"""Step times and host costs of scenarios whose layers were measured whole."""

from hwmodels.host import HostCosts
from hwmodels.profile import HardwareProfile
from twin.llm.layer_timer import LayerTimer
from twin.llm.stages import Stage
from twin.scenario import Scenario

LAYER_HOST = HostCosts(
    schedule_s=0.15e-3,
    schedule_per_seq_s=0.01e-3,
    update_s=0.15e-3,
    update_per_seq_s=0.01e-3,
    wake_s=0.0,
    api_s=4e-3,
    source="middle of ranges for vLLM 0.15.1; not fitted: asynchronous scheduling hides them",
    no_full_graph_layer_s=0.0,
)
"""Host time beside measured layers. Fits of host costs beside kernel tables also take up what
those tables get wrong, so they don't belong here."""


def layer_timer(
    scenario: Scenario, profile: HardwareProfile, capture_sizes: tuple[int, ...], stage: Stage
) -> LayerTimer:
    """Return the timer of a pipeline stage of a scenario over its layer profile."""
    tp = scenario.file.parallelism.tp
    return LayerTimer(profile, stage.arch, tp, capture_sizes, ends=stage.ends)
