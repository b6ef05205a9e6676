"""Engines: simulated time around schedulers. `simulate(scenario) -> SimulationResult`."""

from twin.engine.run import simulate

__all__ = ["simulate"]
