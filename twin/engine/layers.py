"""Step times and host costs of scenarios whose layers were measured whole."""

from hwmodels.host import HostCosts
from twin.llm.layer_timer import LayerTimer
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


def layer_timer(scenario: Scenario, capture_sizes: tuple[int, ...]) -> LayerTimer | None:
    """Return the timer over a scenario's layer profile; None: it has none."""
    profile = scenario.layer_profile
    if profile is None:
        return None
    return LayerTimer(profile, scenario.arch, scenario.file.parallelism.tp, capture_sizes)
