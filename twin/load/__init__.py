"""From files to a `Scenario` or an `EnginePolicy`, every error a single line."""

from twin.load.policy_file import load_policy
from twin.load.scenario_file import load_scenario, read_scenario_file, scenario_from

__all__ = ["load_policy", "load_scenario", "read_scenario_file", "scenario_from"]
