"""`twin-calibrate replay`: a recorded serving run against its simulation."""

from typing import Annotated

import typer

from twin.cli.output import JSON_HELP, console_for, emit_json


def replay_command(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A recorded vLLM run.")],
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Replay a recorded vLLM run and print how far TTFT, TPOT and E2E are off."""
    from calibrate.replay.replay import replay
    from calibrate.replay.report import as_json, print_replay
    from calibrate.replay.run_folder import read_run

    found = replay(read_run(folder))
    print_replay(found, console_for(json_file))
    emit_json(as_json(found), json_file)
