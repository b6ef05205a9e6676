"""What a GPU has said of a policy, or how to ask it."""

from dataclasses import dataclass
from pathlib import Path

from twin.report.numbers import significant
from twin.validation import read_verdict

NOT_VALIDATED = "not validated on hardware"


@dataclass(frozen=True, slots=True)
class HardwareWord:
    """Whether a GPU has validated a policy.

    Attributes:
        validated: it has, the very policy.
        sentence: for a reader.
        command: how to find out; None: it is known.
    """

    validated: bool
    sentence: str
    command: str | None


def hardware_word(policy_path: Path, scenario_path: Path | None = None) -> HardwareWord:
    """Return what the verdict beside a policy file says.

    Args:
        policy_path: a policy file, or a scenario with its policy.
        scenario_path: the scenario it is tried in, where the policy's file has none.

    Raises:
        InputError: the policy or its verdict cannot be read.
    """
    command = f"twin-calibrate validate {policy_path}"
    if scenario_path is not None:
        command += f" --scenario {scenario_path}"
    verdict = read_verdict(policy_path) if policy_path.exists() else None
    if verdict is None:
        return HardwareWord(False, f"The policy is {NOT_VALIDATED}.", command)
    if verdict.dry_run or verdict.verdict == "pretended":
        sentence = f"The policy is {NOT_VALIDATED}: the verdict beside it is of a dry run."
        return HardwareWord(False, sentence, command)
    errors = verdict.overall
    figures = (
        f"step times off by {significant(errors.median_pct)} % (median), bias "
        f"{errors.bias_pct:+.1f} %, over {errors.steps} steps on {verdict.gpu}"
    )
    if verdict.verdict == "validated":
        return HardwareWord(True, f"Validated on hardware, {verdict.date}: {figures}.", None)
    why = " ".join(verdict.reasons)
    return HardwareWord(False, f"A GPU did not validate the policy: {figures}. {why}", command)
