"""The `twin` command. Each sub-command is a file; heavy imports happen inside them."""

import sys


def main() -> None:
    """Entry point of the `twin` command."""
    try:
        from twin.cli.app import app
        from twin.cli.running import run
    except KeyboardInterrupt:  # while the imports run; later `run` answers it
        sys.exit(130)
    sys.exit(run(app))


__all__ = ["main"]
