"""`twin app`: start the what-if app as a process of its own."""

import os
import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from twin.errors import InputError


def app_command(
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than loopback open it to others.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8501,
    base_path: Annotated[
        str, typer.Option(help="Path under which a reverse proxy serves it.")
    ] = "",
) -> None:
    """Open the what-if app: turn a knob and look."""
    # By name: the twin imports nothing of the app, which stands above it. -P: not an `app` that
    # happens to lie in the current folder.
    if find_spec("app") is None or find_spec("streamlit") is None:
        raise InputError(
            "the app needs Streamlit, which is not installed",
            remedy="make app, or pip install 'servetwin[app]'",
        )
    command = [sys.executable, "-P", "-m", "app", "--host", host, "--port", str(port)]
    command += ["--base-path", base_path] if base_path else []
    sys.stdout.flush()
    os.execv(sys.executable, command)  # noqa: S606 (our own interpreter and module)
