"""`python -m app`: check what was asked for, then become Streamlit."""

import argparse
import errno
import ipaddress
import os
import re
import socket
import sys
from importlib.util import find_spec

from app.serving.settings import READY, flags
from twin.errors import InputError, ServetwinError

_PART = r"(?!\.\.?(?:/|$))[A-Za-z0-9_~.-]+"
_BASE_PATH = re.compile(rf"{_PART}(?:/{_PART})*")


def main(arguments: list[str] | None = None) -> None:
    """Become the app's server; a process that cannot ends with exit code 2."""
    asked = _parser().parse_args(arguments)
    try:
        command = command_of(asked.host, asked.port, asked.base_path)
    except ServetwinError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    line = address_line(asked.host, asked.port, asked.base_path)
    os.execve(sys.executable, command, {**os.environ, READY: line})  # noqa: S606


def command_of(host: str, port: int, base_path: str) -> list[str]:
    """Return the command that runs the app.

    Args:
        host: address to listen on.
        port: to listen on.
        base_path: path under which a reverse proxy serves it.

    Raises:
        InputError: Streamlit is not installed, or one of them cannot be used.
    """
    if find_spec("streamlit") is None:
        raise InputError(
            "the app needs Streamlit, which is not installed",
            remedy="make app, or pip install 'servetwin[app]'",
        )
    if not 1 <= port <= 65535:
        raise InputError(f"{port} is no port", where="--port", remedy="1 to 65535")
    path = base_path.strip("/")
    if path and not _BASE_PATH.fullmatch(path):
        raise InputError(
            f"{base_path[:80]!r} is no path", where="--base-path", remedy="for example /twin"
        )
    _check_free(_checked(host), port)
    return [sys.executable, "-P", "-m", "app.serving.server", *flags(host, port, path)]


def address_line(host: str, port: int, base_path: str) -> str:
    """Return where to look, and who else can."""
    path = base_path.strip("/")
    shown = "localhost" if _is_loopback(host) else host
    line = f"servetwin: http://{shown}:{port}/{f'{path}/' if path else ''}"
    if not _is_loopback(host):
        line += "  (anyone who reaches this address can use it: it asks for no password)"
    return line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="twin app", description="The what-if app in a browser.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8501, help="port to listen on")
    parser.add_argument("--base-path", default="", help="path behind a reverse proxy")
    return parser


def _checked(host: str) -> str:
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        raise InputError(
            f"{host[:80]!r} is no address of this machine", where="--host", remedy="127.0.0.1"
        ) from None
    return host


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_free(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            elsewhere = error.errno == errno.EADDRNOTAVAIL
            raise InputError(
                f"cannot listen on {host}:{port}: {error.strerror or error}",
                where="--host" if elsewhere else "--port",
                remedy="127.0.0.1" if elsewhere else "choose another port",
            ) from None
