"""`twin search`: which policy to deploy instead, and whether to believe it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twin.cli.output import JSON_HELP, check_distinct, check_writable, console_for, emit_json

if TYPE_CHECKING:
    from rich.console import Console

    from twin.search.judging.report import SearchReport
    from twin.search.problem import SearchProblem
    from twin.search.study.options import StudyOptions, StudyResult

_GOODPUT = "goodput_per_gpu_hour"
_RAY_HELP = "Evaluate on a Ray cluster: its address, or auto for the one at hand."
_STORAGE_HELP = "Keep the study in a database: postgresql://... for many machines, or sqlite:///..."
_OUT_HELP = "Folder of the study and of what comes of it; the same command again goes on there."


def search_command(
    scenario: Annotated[str, typer.Argument(help="A scenario file, or a built-in example's name.")],
    out: Annotated[str, typer.Option(metavar="DIR", help=_OUT_HELP)],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override any key; may be repeated."),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"What to improve; the first decides. [{_GOODPUT}]"),
    ] = None,
    trials: Annotated[int, typer.Option(metavar="N", help="Candidates to try.")] = 200,
    gpus: Annotated[
        int | None, typer.Option(metavar="N", help="GPUs in all, at most. [the scenario's own]")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Search what this engine has, or any. [the scenario's]"),
    ] = None,
    knob: Annotated[
        list[str] | None, typer.Option(metavar="KEY", help="Turn only these; may be repeated.")
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="tpe, nsga2, nsga3 or random. [tpe for one objective, nsga2 for several]",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(metavar="N", help="Processes on this machine.")] = 1,
    storage: Annotated[str | None, typer.Option(metavar="URL", help=_STORAGE_HELP)] = None,
    ray: Annotated[str | None, typer.Option(metavar="ADDRESS", help=_RAY_HELP)] = None,
    halving: Annotated[
        bool | None,
        typer.Option(
            "--halving/--no-halving",
            help="Stop weak candidates after a part of the traffic. [where that represents it]",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of what the sampler draws.")] = 0,
    max_kv_error: Annotated[
        float, typer.Option(metavar="X", help="Relative error of a quantised KV cache, at most.")
    ] = 0.0,
    max_weight_error: Annotated[
        float, typer.Option(metavar="X", help="Relative error of quantised weights, at most.")
    ] = 0.0,
    price: Annotated[float | None, typer.Option(metavar="USD", help="Of a GPU-hour.")] = None,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Fresh seeds that the winner is run on again.")
    ] = 5,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
) -> None:
    """Search for a better policy, judge the winner on fresh traffic, say what to deploy."""
    from twin.search.study.options import StudyOptions

    check_writable(json_file, out, inputs=[scenario])
    check_distinct({"--out": out, "--json": json_file})
    _spare_study(out, json_file)
    if seeds < 2:
        _refuse(f"{seeds} is too few for an interval", "--seeds", "give 2 or more")
    console = console_for(json_file)
    problem = _problem(
        scenario,
        set_ or [],
        objective or [_GOODPUT],
        (gpus, max_kv_error, max_weight_error),
        {"engine": engine, "knobs": knob, "usd_per_gpu_hour": price},
    )
    options = StudyOptions(
        out=Path(out), trials=trials, sampler=sampler, seed=seed, workers=workers,
        storage=storage, ray=ray, halving=halving,
    )  # fmt: skip
    study = _study(problem, options, quiet)
    report = _judged(problem, study, seeds, Path(out), quiet)
    _tell(report, study, options, console, quiet, json_file)
    if report.judgement.best is None:
        raise typer.Exit(1)


def _problem(
    scenario: str,
    assignments: list[str],
    objectives: list[str],
    limits: tuple[int | None, float, float],
    more: dict[str, Any],
) -> "SearchProblem":
    from twin.load import read_scenario_file
    from twin.load.overrides import parse_assignments
    from twin.search.candidates import gpus_of
    from twin.search.problem import Limits
    from twin.search.setting import make_problem

    overrides = parse_assignments(assignments)
    file, _ = read_scenario_file(scenario, overrides)
    gpus, kv, weights = limits
    return make_problem(
        scenario,
        overrides,
        objectives=objectives,
        limits=Limits(gpus_of(file) if gpus is None else gpus, kv, weights),
        **{**more, "engine": more["engine"] or file.engine.name},
    )


def _study(problem: "SearchProblem", options: "StudyOptions", quiet: bool) -> "StudyResult":
    from twin.cli.progress import shown_search
    from twin.search.study.coordinator import run_study

    with shown_search(quiet) as told:
        return run_study(problem, options, told)


def _judged(
    problem: "SearchProblem", study: "StudyResult", seeds: int, out: Path, quiet: bool
) -> "SearchReport":
    from twin.cli.progress import shown_step
    from twin.search.judging.conclude import conclude
    from twin.search.study.infeasible import NothingFeasibleError

    if not any(trial.state == "complete" for trial in study.trials):
        raise NothingFeasibleError(study)  # nothing that a report could show
    with shown_step(quiet) as step:
        return conclude(problem, study, out, seeds=seeds, command=_command(), progress=step)


def _tell(
    report: "SearchReport",
    study: "StudyResult",
    options: "StudyOptions",
    console: "Console",
    quiet: bool,
    json_file: str | None,
) -> None:
    from dataclasses import asdict

    from twin.search.judging.terminal import terminal_summary
    from twin.search.output import write_search

    settings = {
        "sampler": study.sampler,
        "seed": options.seed,
        "halving": study.halving,
        "rungs": [asdict(rung) for rung in study.rungs],
        "population": study.population,
        "where": study.where,
    }
    paths, summary = write_search(report, study, settings, options.out)
    if not quiet:
        console.print(terminal_summary(report))
    page = next(path for path in paths if path.name == "report.html")
    console.print(f"Report: {page}", soft_wrap=True)
    emit_json(summary, json_file)


def _spare_study(out: str, json_file: str | None) -> None:
    """Refuse `--json` onto a file that the search itself writes, its trials above all."""
    from twin.search.output import FILES
    from twin.search.study.storage import JOURNAL

    for name in (JOURNAL, *FILES):
        check_distinct({f"--out {out}": str(Path(out) / name), "--json": json_file})


def _refuse(problem: str, where: str, remedy: str) -> None:
    from twin.errors import InputError

    raise InputError(problem, where=where, remedy=remedy)


def _command() -> str:
    """Return the command line, any password in it left out."""
    import shlex
    import sys

    from twin.search.study.storage import without_passwords

    return shlex.join(["twin", *(without_passwords(word) for word in sys.argv[1:])])
