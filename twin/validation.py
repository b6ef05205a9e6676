"""What a GPU said of a policy's step times, kept beside the policy: `POLICY.validation.json`."""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from twin.errors import InputError
from twin.files import write_text
from twin.load.documents import read_mapping, read_text
from twin.load.policy_file import load_policy
from twin.load.scenario_file import read_scenario_file
from twin.load.validation import validate
from twin.policy import EnginePolicy
from twin.strict import Strict

VERDICT_SCHEMA_VERSION: Literal[1] = 1
PRETENDED = "pretended"

Share = Annotated[float, Field(ge=0, le=1)]
Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Interval = tuple[float, float]


class ErrorFigures(Strict):
    """Errors of predicted step times in per cent, weighted by GPU time."""

    steps: int
    median_pct: float = Field(description="median absolute error")
    bias_pct: float = Field(description="mean signed error: above 0, predicted is too slow")


class StratumErrors(ErrorFigures):
    """Of steps whose batches are alike; `share` is theirs of the simulated GPU time."""

    name: str
    share: Share


class ValidatedStep(Strict):
    """One step of the simulation, run on the GPU.

    Attributes:
        core, number: which engine core's, and the how-manieth of it.
        weight: what it counts, as a share of all.
        captured: it ran as a CUDA graph.
        simulated_s: what it took in the simulation, host, corrections and collectives included.
    """

    stratum: str
    core: int
    number: int
    weight: Share
    seqs: int
    tokens: int
    kv_tokens: int
    captured: bool
    simulated_s: float
    predicted_s: float
    measured_s: float
    measured_p90_s: float


class Verdict(Strict):
    """Predicted against measured step times of one policy in one scenario.

    Attributes:
        verdict: `pretended` after a dry run, which measures nothing.
        reasons: why it is not validated, one sentence each.
        policy_sha256, scenario_sha256: of their content, not of how their files spell it.
        profile_sha256: of the profile that the scenario names; None: a shipped one.
        left_out: what neither side holds.
        median_interval_pct, bias_interval_pct: 95 % bootstrap intervals.
        steps_dropped: sampled steps that no time was left for.
    """

    schema_version: Literal[1] = VERDICT_SCHEMA_VERSION
    verdict: Literal["validated", "not validated", "pretended"]
    reasons: tuple[str, ...]
    dry_run: bool
    date: str
    gpu: str
    driver: str
    versions: dict[str, str]
    policy_sha256: Digest
    scenario_sha256: Digest
    profile_sha256: Digest | None
    scenario: str
    durations: str
    left_out: tuple[str, ...]
    seed: int
    covered_share: Share
    steps_dropped: int
    overall: ErrorFigures
    median_interval_pct: Interval
    bias_interval_pct: Interval
    strata: tuple[StratumErrors, ...]
    steps: tuple[ValidatedStep, ...]

    def holds_for(self, policy: EnginePolicy) -> bool:
        """Whether a GPU has validated this very policy."""
        current = self.policy_sha256 == policy_digest(policy)
        return current and not self.dry_run and self.verdict == "validated"


def verdict_path(policy_path: str | Path, *, dry_run: bool = False) -> Path:
    """Return where the verdict on a policy or scenario file stands.

    That of a dry run has a place of its own: it never takes that of a real one.
    """
    name = "validation-dry-run" if dry_run else "validation"
    return Path(policy_path).with_suffix(f".{name}.json")


def read_policy_of(path: str | Path) -> EnginePolicy:
    """Return the policy in a policy file, or the one of a scenario file.

    Raises:
        InputError: it is neither.
    """
    data = read_mapping(Path(path), "policy or scenario")
    if "llm" in data or "workload" in data:
        return read_scenario_file(path)[0].policy
    return load_policy(path)


def policy_digest(policy: EnginePolicy) -> str:
    """Return the SHA-256 of what a policy says."""
    return content_digest(policy.model_dump(mode="json"))


def content_digest(data: Any) -> str:
    """Return the SHA-256 of plain data."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()


def write_verdict(verdict: Verdict, path: Path) -> None:
    """Write a verdict, whole or not at all."""
    data = verdict.model_dump(mode="json")
    write_text(path, json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_verdict(policy_path: str | Path) -> Verdict | None:
    """Return the verdict on a policy as it stands now.

    None: there is none, or the policy has changed since. What a dry run pretended stands in a
    file of its own and is not looked at; whether the policy is validated, `holds_for` says.

    Raises:
        InputError: the policy or the verdict's file cannot be read.
    """
    path = verdict_path(policy_path)
    if not path.exists():
        return None
    where = str(path)
    try:
        data = json.loads(read_text(path, "verdict"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not valid JSON: {error}", where=where, remedy=_AGAIN) from None
    if not isinstance(data, dict) or data.get("schema_version") != VERDICT_SCHEMA_VERSION:
        raise InputError("is not a verdict of this version", where=where, remedy=_AGAIN)
    verdict = validate(Verdict, data, where)
    current = policy_digest(read_policy_of(policy_path))
    return verdict if verdict.policy_sha256 == current else None


_AGAIN = "run `twin-calibrate validate` again"
