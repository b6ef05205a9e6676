"""`twin-calibrate replay`: a recorded serving run against its simulation."""

from typing import Annotated

import typer

from twin.cli.output import JSON_HELP, check_json, console_for, emit_json

_ABLATION_HELP = "Leave out one term after the other, and say what the errors are then."


def replay_command(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A recorded vLLM run.")],
    ablation: Annotated[bool, typer.Option("--ablation", help=_ABLATION_HELP)] = False,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Replay a recorded vLLM run and print how far TTFT, TPOT and E2E are off."""
    from dataclasses import asdict

    from calibrate.replay.ablation import ablate, print_ablation
    from calibrate.replay.replay import replay
    from calibrate.replay.report import as_json, print_replay
    from calibrate.replay.run_folder import input_files, read_run

    check_json(json_file, inputs=input_files(folder))
    run, console = read_run(folder), console_for(json_file)
    if ablation:
        without = ablate(run)
        print_ablation(without, console)
        emit_json([asdict(one) for one in without], json_file)
        return
    found = replay(run)
    print_replay(found, console)
    emit_json(as_json(found), json_file)
