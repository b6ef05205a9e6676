"""From a policy and its scenario to a verdict: simulate, sample, predict, run, judge."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from calibrate.validation.batch import Batch, batches_of
from calibrate.validation.clock import Floats
from calibrate.validation.hardware import Hardware, Trial, run_trials
from calibrate.validation.judge import judge
from calibrate.validation.predict import Predictor, kernels_alone, left_out
from calibrate.validation.sample import Sample, SampledStep, in_turn, sample_steps
from calibrate.validation.shapes import rank_shapes
from twin.engine.run import simulate
from twin.recording import RecordingSpec
from twin.scenario import Scenario
from twin.validation import PRETENDED, ValidatedStep, Verdict, content_digest, policy_digest

_QUANTISED_PREFILL = "chunks over a quantised cache attend over a 16-bit copy of it on the GPU"
_LAYERS = "measured layers of this GPU: the prediction is of single kernels"


@dataclass(frozen=True, slots=True)
class Asked:
    """How a validation is made.

    Attributes:
        steps: to sample.
        seed: of sample, weights, noise and bootstrap.
        deadline_s: on `time.monotonic`, after which no further step is begun.
        dry_run: nothing is measured.
    """

    steps: int
    seed: int
    deadline_s: float
    dry_run: bool


def validate_scenario(
    scenario: Scenario,
    hardware_for: Callable[[Scenario], Hardware],
    asked: Asked,
    clock: Callable[[], float] = time.monotonic,
) -> Verdict:
    """Return what the GPU says of a scenario's step times.

    Args:
        scenario: with the policy in it.
        hardware_for: gives what steps run on; called once the scenario is known to fit.
        asked: how much.
        clock: tells the time for the deadline.

    Raises:
        InputError: its network or policy cannot be run here, or no step was simulated.
    """
    shapes, given = rank_shapes(scenario), scenario
    hardware = hardware_for(scenario)
    scenario = _whole_record(kernels_alone(scenario))
    sample = sample_steps(simulate(scenario), asked.steps, asked.seed)
    order = in_turn(sample)
    batches = batches_of(scenario, [(step.core, step.number) for step in order])
    trials = _trials(scenario, [batches[step.core, step.number] for step in order])
    hardware.prepare(shapes, [trial.batch for trial in trials], asked.seed)
    seconds = run_trials(hardware, trials, asked.deadline_s, clock)
    steps = _validated(order, trials, seconds)
    return _verdict(given, hardware, sample, steps, asked)


def _whole_record(scenario: Scenario) -> Scenario:
    """Every step is recorded, whatever the scenario keeps: they are numbered by it."""
    return replace(scenario, file=scenario.file.model_copy(update={"recording": RecordingSpec()}))


def _trials(scenario: Scenario, batches: Sequence[Batch]) -> list[Trial]:
    predictor = Predictor(scenario)
    return [
        Trial(batch, predictor.captured_size(batch.shape), predictor.seconds(batch.shape))
        for batch in batches
    ]


def _validated(
    order: Sequence[SampledStep], trials: Sequence[Trial], seconds: Sequence[Floats]
) -> tuple[ValidatedStep, ...]:
    """The measured steps, their weights made to add up to 1 again."""
    total = sum(step.weight for step, _ in zip(order, seconds, strict=False))
    return tuple(
        ValidatedStep(
            stratum=step.stratum,
            core=step.core,
            number=step.number,
            weight=step.weight / total,
            seqs=trial.batch.seqs,
            tokens=trial.batch.tokens,
            kv_tokens=trial.batch.kv_tokens,
            captured=trial.padded_tokens is not None,
            simulated_s=step.simulated_s,
            predicted_s=trial.predicted_s,
            measured_s=float(np.median(runs)),
            measured_p90_s=float(np.percentile(runs, 90)),
        )
        for step, trial, runs in zip(order, trials, seconds, strict=False)
    )


def _verdict(
    scenario: Scenario,
    hardware: Hardware,
    sample: Sample,
    steps: tuple[ValidatedStep, ...],
    asked: Asked,
) -> Verdict:
    judgement = judge(steps, sample.shares, asked.seed)
    said = "validated" if judgement.validated else "not validated"
    machine, profile = hardware.machine, scenario.profile
    return Verdict(
        verdict=PRETENDED if asked.dry_run else said,
        reasons=judgement.reasons,
        dry_run=asked.dry_run,
        date=datetime.now(UTC).date().isoformat(),
        gpu=machine.gpu,
        driver=machine.driver,
        versions=dict(machine.versions),
        policy_sha256=policy_digest(scenario.file.policy),
        scenario_sha256=content_digest(scenario.as_dict()),
        profile_sha256=None if profile is None else profile.sha256,
        scenario=scenario.file.name,
        durations=scenario.notes[-1],
        left_out=_left_out(scenario),
        seed=asked.seed,
        covered_share=min(1.0, sum(sample.shares[n] for n in {step.stratum for step in steps})),
        steps_dropped=len(sample.steps) - len(steps),
        overall=judgement.overall,
        median_interval_pct=judgement.median_interval_pct,
        bias_interval_pct=judgement.bias_interval_pct,
        strata=judgement.strata,
        steps=steps,
    )


def _left_out(scenario: Scenario) -> tuple[str, ...]:
    found = list(left_out(scenario))
    if scenario.layer_profile is not None:
        found.append(_LAYERS)
    if scenario.precision.kv_dtype != "bf16":
        found.append(_QUANTISED_PREFILL)
    return tuple(found)
