"""What a GPU has said of a policy, or how to ask it."""

from dataclasses import dataclass
from pathlib import Path

from twin.policy import EnginePolicy
from twin.report.numbers import significant
from twin.validation import Verdict, read_policy_of, read_verdict

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


def hardware_word(policy: EnginePolicy, path: Path) -> HardwareWord:
    """Return what the verdict beside a file says of a policy.

    Args:
        policy: the recommended one.
        path: where it stands, or will: a scenario with its policy. A verdict that is there is of
            the policy that stands there now.

    Raises:
        InputError: the file or the verdict cannot be read.
    """
    command = f"twin-calibrate validate {path}"
    verdict = _verdict(policy, path)
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
    if verdict.holds_for(policy):
        return HardwareWord(True, f"Validated on hardware, {verdict.date}: {figures}.", None)
    why = " ".join(verdict.reasons)
    return HardwareWord(False, f"A GPU did not validate the policy: {figures}. {why}", command)


def _verdict(policy: EnginePolicy, path: Path) -> Verdict | None:
    if not path.exists() or read_policy_of(path) != policy:
        return None
    return read_verdict(path)
