"""The `twin` command. Each sub-command is a file; heavy imports happen inside them."""

from twin.cli.app import main

__all__ = ["main"]
