"""`Pricing`: prices of operations that runs of one deployment share."""

from dataclasses import dataclass, field

from hwmodels.scaled import RememberingCostModel
from twin.engine.engines import EngineCosts, engine_costs
from twin.scenario import Scenario

MOST_PRICES = 250_000
"""About 300 MB. Beyond it memory begins anew: a long search would fill the machine's."""


@dataclass(slots=True)
class Pricing:
    """Remembers what each operation costs: many runs ask for the same ones over and over.

    Prices are the same to the last bit, and half of a run's time is saved. One network, GPU, engine
    and parallelism share one `Pricing`.
    """

    _costs: dict[bool, EngineCosts] = field(default_factory=dict)
    _models: dict[bool, RememberingCostModel] = field(default_factory=dict)

    def of(self, scenario: Scenario) -> EngineCosts | None:
        """Return the costs to simulate a variant with; None: those that it would have itself.

        Of what a variant may change, only `enforce_eager` tells how an operation is priced; the
        rest is in the operation. Layers measured whole, layouts of KV that cost something and
        pools of several GPUs are left to the simulation.
        """
        file = scenario.file
        if scenario.layer_profile is not None or scenario.pools or not file.kv_layout.costs_nothing:
            return None
        eager = file.policy.enforce_eager
        if eager not in self._costs or len(self._models[eager]) > MOST_PRICES:
            costs = engine_costs(scenario)
            model = self._models[eager] = RememberingCostModel(costs.cost_model)
            self._costs[eager] = EngineCosts(costs.host, model)
        return self._costs[eager]
