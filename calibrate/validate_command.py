"""`twin-calibrate validate`: a policy's step times against this machine's GPU."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from twin.cli.output import JSON_HELP

if TYPE_CHECKING:
    from pathlib import Path

    from calibrate.validation.hardware import Hardware
    from twin.scenario import Scenario

_POLICY_HELP = "A policy file, or a scenario with its policy."
_SCENARIO_HELP = "The scenario that the policy is tried in."
_PROFILE_HELP = "Profile that prices kernels instead of the scenario's."
_SET_HELP = "Override any key of the scenario; may be repeated."
_DRY_HELP = "Launch small steps once, on a CPU if need be, and pretend all seconds."


def validate_command(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help=_POLICY_HELP)],
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="FILE", help=_SCENARIO_HELP)
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="FILE", help=_PROFILE_HELP)
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help=_SET_HELP)
    ] = None,
    steps: Annotated[
        int, typer.Option("--steps", min=1, max=1000, help="Steps to run on the GPU.")
    ] = 24,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Which steps.")] = 0,
    minutes: Annotated[
        float, typer.Option("--minutes", min=0.05, max=600, help="Time to spend.")
    ] = 9.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=_DRY_HELP)] = False,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Run sampled steps of a simulation on the GPU, and say how far predicted times are off.

    The verdict is stored beside the policy, as POLICY.validation.json; that of a dry run as
    POLICY.validation-dry-run.json.
    """
    import time

    deadline_s = time.monotonic() + 60 * minutes
    from calibrate.validation.report import print_verdict
    from calibrate.validation.validate import Asked, validate_scenario
    from twin.cli.output import check_json, console_for, emit_json
    from twin.load.overrides import parse_assignments
    from twin.validation import verdict_path, write_verdict

    check_json(json_file, inputs=[name for name in (policy, scenario, profile) if name])
    overrides = parse_assignments(set_ or [])
    if profile is not None:
        overrides["profile"] = profile
    loaded, stored = _load(policy, scenario, overrides)

    def hardware_for(found: "Scenario") -> "Hardware":
        from calibrate.validation.hardware import GpuHardware, PretendedHardware

        return PretendedHardware(found.gpu, seed) if dry_run else GpuHardware(found.gpu)

    asked = Asked(steps, seed, deadline_s, dry_run)
    verdict = validate_scenario(loaded, hardware_for, asked)
    console = console_for(json_file)
    print_verdict(verdict, console)
    if isinstance(stored, str):
        console.print(f"{stored}: no verdict was stored.", soft_wrap=True, markup=False)
    else:
        target = verdict_path(stored, dry_run=dry_run)
        write_verdict(verdict, target)
        console.print(f"Stored: {target}", soft_wrap=True, markup=False)
    emit_json(verdict.model_dump(mode="json"), json_file)


def _load(
    policy: str, scenario: str | None, overrides: "dict[str, Any]"
) -> "tuple[Scenario, Path | str]":
    """The scenario with the policy in it, and the file that its verdict stands beside.

    A text instead of the file says why there can be none.
    """
    from twin.errors import InputError
    from twin.load import load_scenario
    from twin.load.documents import read_mapping
    from twin.load.examples import FOLDER, find_scenario

    found = find_scenario(policy, "policy file")
    data = read_mapping(found, "policy or scenario")
    itself = "llm" in data or "workload" in data
    if itself and scenario is not None:
        raise InputError(
            "is a scenario itself", where=policy, remedy="leave --scenario out, or name a policy"
        )
    if not itself and scenario is None:
        raise InputError("is a policy", where=policy, remedy="name its --scenario")
    if not itself:
        if "policy" in overrides:
            raise InputError(
                f"the policy is {policy} already", where="--set policy", remedy="leave it out"
            )
        overrides = {**overrides, "policy": str(found)}
    loaded = load_scenario(policy if itself else str(scenario), overrides)
    if found.parent == FOLDER:
        return loaded, "A built-in example has no file beside it"
    return loaded, found if _says(found, loaded) else f"--set changed what {found} says"


def _says(policy: "Path", loaded: "Scenario") -> bool:
    """Whether the policy that was loaded is the very one in the file."""
    from twin.validation import policy_digest, read_policy_of

    return policy_digest(loaded.file.policy) == policy_digest(read_policy_of(policy))
