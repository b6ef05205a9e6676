"""The steps of `scripts/gpu_check.sh`, within one budget; standard library only."""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import modules
import table
from folder import claim
from table import CUT, FAILED, RAN, Line, Outcome

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUDGET_S = 525.0
"""All steps together; the table and a step's end take the rest of the nine minutes."""
POLICIES = ("llama-8b", "llama-8b-fp8-kv")
_WORKERS = 8
"""Processes that check kernels side by side: most of their time goes into compiling."""
_DRY_KERNELS = ("rms_norm", "silu_mul", "qkv_rotary")
_CLI = "from calibrate.cli import main; main()"
_NAMES = "from kernels.catalogue import KERNELS; print(*KERNELS)"

Command = list[str]


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        commands: those that run side by side, made from the seconds they have.
        limit_s, least_s: most seconds it gets; with fewer it isn't begun.
        needs: modules without which it cannot run.
        after: steps that must have run.
    """

    name: str
    commands: Callable[[float], list[Command]]
    limit_s: float
    least_s: float
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass
class Check:
    """One run of all steps.

    Attributes:
        out: where everything goes.
        dry_run: every time is pretended.
        outcomes: of the steps so far.
    """

    out: Path
    dry_run: bool
    missing: frozenset[str]
    budget_s: float = BUDGET_S
    clock: Callable[[], float] = time.monotonic
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """The budget runs from here."""
        self._started_s = self.clock()

    @property
    def elapsed_s(self) -> float:
        """Seconds since it was made."""
        return self.clock() - self._started_s

    def run(self, steps: Sequence[Step]) -> None:
        """Run the steps in order, keeping for each later one what it needs at least."""
        for place, step in enumerate(steps):
            later_s = sum(one.least_s for one in steps[place + 1 :])
            room_s = min(step.limit_s, self.budget_s - self.elapsed_s - later_s)
            outcome = self._outcome(step, room_s)
            self.outcomes[step.name] = outcome
            print(f"{step.name}: {outcome.status} ({outcome.seconds:.0f} s)", flush=True)

    def _outcome(self, step: Step, room_s: float) -> Outcome:
        lacking = sorted(self.missing & set(step.needs))
        if lacking:
            return Outcome(FAILED, 0.0, f"lacks {', '.join(lacking)}")
        before = [name for name in step.after if self.outcomes[name].status != RAN]
        if before:
            return Outcome(FAILED, 0.0, f"{before[0]} did not run")
        if room_s < step.least_s:
            return Outcome(CUT, 0.0, f"{room_s:.0f} s were left, it needs {step.least_s:.0f}")
        return self._started(step, room_s)

    def _started(self, step: Step, room_s: float) -> Outcome:
        began_s = self.clock()
        running = [
            self._process(step.name, number, command)
            for number, command in enumerate(step.commands(room_s))
        ]
        codes = []
        for process in running:
            left_s = max(0.1, room_s - (self.clock() - began_s))
            try:
                codes.append(process.wait(timeout=left_s))
            except subprocess.TimeoutExpired:
                process.terminate()
                try:
                    process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    process.kill()
                codes.append(None)
        seconds = self.clock() - began_s
        if None in codes:
            return Outcome(CUT, seconds, f"stopped after {seconds:.0f} s")
        failed = [code for code in codes if code]
        if failed:
            reason = f"exit code {failed[0]}: {_last_line(self.out / f'{step.name}.log')}"
            return Outcome(FAILED, seconds, reason)
        return Outcome(RAN, seconds)

    def _process(self, name: str, number: int, command: Command) -> "subprocess.Popen[bytes]":
        with (
            (self.out / f"{name}.{number}.out").open("wb") as rows,
            (self.out / f"{name}.log").open("ab") as log,
        ):
            return subprocess.Popen(  # noqa: S603  our own commands
                command, stdout=rows, stderr=log, env=self.environment, cwd=ROOT
            )


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines() if path.is_file() else []
    return lines[-1][:160] if lines else "nothing was said"


def calibrate(*arguments: object) -> Command:
    """Return a `twin-calibrate` command."""
    return [sys.executable, "-c", _CLI, *map(str, arguments)]


def steps_of(check: Check, seed: int) -> list[Step]:
    """Return all steps, in order."""
    out, dry = check.out, ["--dry-run"] if check.dry_run else []
    return [
        Step("kernels", lambda _: _checking(check, seed), 150, 30),
        Step(
            "measure",
            lambda room_s: [calibrate("measure", "--out", out / "rows", *_measure(check, room_s))],
            255, 60, modules.MEASURE,
        ),
        Step(
            "fit",
            lambda _: [calibrate("fit", out / "rows", "--out", out / "profile.npz",
                                 "--json", out / "fit.json")],
            45, 10, modules.FIT, ("measure",),
        ),
        Step(
            "plot",
            lambda _: [calibrate("plot", out / "rows", "--out", out / "plots")],
            20, 5, modules.PLOT, ("measure",),
        ),
        *(_validation(check, name, seed, dry) for name in POLICIES),
    ]  # fmt: skip


def _checking(check: Check, seed: int) -> list[Command]:
    base = [sys.executable, "-m", "kernels.checking", "--seed", str(seed), "--json"]
    names = list(_DRY_KERNELS)
    if not check.dry_run:
        told = subprocess.run(  # noqa: S603  our own command
            [sys.executable, "-c", _NAMES], env=check.environment, cwd=ROOT,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        names = told.stdout.split()
    if not names:
        return [base]  # which says what is wrong
    groups = [names[worker::_WORKERS] for worker in range(_WORKERS)]
    if check.dry_run:
        groups = [names]
    return [
        [*base, *(word for name in group for word in ("--kernel", name))]
        for group in groups
        if group
    ]


def _measure(check: Check, room_s: float) -> list[str]:
    if check.dry_run:
        return ["--dry-run", "--small", "--minutes", "0.3"]
    return ["--minutes", f"{min(4.0, (room_s - 15) / 60):.2f}"]


def _validation(check: Check, name: str, seed: int, dry: list[str]) -> Step:
    def commands(room_s: float) -> list[Command]:
        fitted = table.read_json(check.out / "fit.json")
        policy, scenario = place_policy(check.out, name, str(fitted.get("gpu") or ""))
        profile = ["--profile", fitted["file"]] if fitted.get("file") else []
        steps = ["--steps", "8"] if check.dry_run else []
        minutes = f"{max(0.1, (room_s - 20) / 60):.2f}"
        return [
            calibrate(
                "validate", policy, "--scenario", scenario, *profile, *steps, *dry,
                "--seed", seed, "--minutes", minutes, "--json", check.out / f"validate-{name}.json",
            )
        ]  # fmt: skip

    return Step(f"validate-{name}", commands, 60, 40 if not check.dry_run else 10,
                modules.VALIDATE)  # fmt: skip


def place_policy(out: Path, name: str, gpu: str) -> tuple[Path, Path]:
    """Put a policy and its scenario into the folder, the scenario on the GPU that was measured."""
    policy, scenario = out / f"{name}.yaml", out / f"{name}.scenario.yaml"
    shutil.copyfile(HERE / policy.name, policy)
    text = (HERE / scenario.name).read_text(encoding="utf-8")
    if gpu:
        text = text.replace("gpu: h200_sxm", f"gpu: {gpu}")
    scenario.write_text(text, encoding="utf-8")
    return policy, scenario


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; return the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/gpu_check.sh", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="pretend every time")
    parser.add_argument("--seed", type=int, default=None, help="of inputs; without it a fresh one")
    parser.add_argument(
        "--partial", action="store_true", help="run what can be run with the modules there are"
    )
    asked = parser.parse_args(arguments)
    out = Path(os.environ.get("OUT") or ROOT / "out" / "gpu_check").absolute()
    environment = modules.environment(out, ROOT)
    # Before the folder is emptied of what an earlier check found.
    problem = _cannot_run(asked, environment) or claim(out)
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
    missing = modules.provide(out, environment)
    if missing:
        print(f"Missing modules: {', '.join(sorted(missing))}.", flush=True)
    check = Check(out, asked.dry_run, frozenset(missing), environment=environment)
    if asked.dry_run:
        print("DRY RUN: every time below is pretended, nothing is measured.", flush=True)
    check.run(steps_of(check, seed))
    lines = table.lines_of(out, check.outcomes, POLICIES, dry_run=asked.dry_run)
    return _finish(check, lines, seed)


def _cannot_run(asked: argparse.Namespace, environment: dict[str, str]) -> str:
    """Return why nothing should be begun, or ""."""
    lacking = modules.lacking(environment)
    if lacking and not asked.partial:
        return (
            f"{sys.executable} lacks {', '.join(lacking)}; name another interpreter in PYTHON, or "
            "a folder of wheels in SERVETWIN_WHEELS, or give --partial"
        )
    if not asked.dry_run and not modules.sees_gpu(environment):
        return "PyTorch sees no CUDA GPU; run it on a GPU machine, or try it with --dry-run"
    return ""


def _finish(check: Check, lines: list[Line], seed: int) -> int:
    kept = all(line.state != table.MISSED for line in lines)
    text = table.text_of(lines, check.outcomes, check.elapsed_s, dry_run=check.dry_run)
    print(text)
    (check.out / "table.txt").write_text(text + "\n", encoding="utf-8")
    summary: dict[str, Any] = {
        "green": kept and not check.dry_run,
        "dry_run": check.dry_run,
        "seed": seed,
        "seconds": round(check.elapsed_s, 1),
        "lines": [vars(line) for line in lines],
        "steps": {name: vars(outcome) for name, outcome in check.outcomes.items()},
    }
    (check.out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
