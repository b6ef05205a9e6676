"""Starting the app: what can be asked for, and what is refused in one line."""

import socket

import pytest

from app.serving.server import SCRIPT
from app.serving.settings import flags
from app.serving.start import address_line, command_of
from twin.errors import InputError


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_the_command_listens_where_it_was_told() -> None:
    port = _free_port()
    command = command_of("127.0.0.1", port, "/tools/twin/")
    assert "--server.address=127.0.0.1" in command
    assert f"--server.port={port}" in command
    assert "--server.baseUrlPath=tools/twin" in command


def test_nothing_is_told_to_the_outside() -> None:
    settings = flags("127.0.0.1", 8501, "")
    assert "--browser.gatherUsageStats=false" in settings
    assert "--client.showErrorDetails=none" in settings
    assert "--client.toolbarMode=viewer" in settings


@pytest.mark.parametrize(
    ("host", "port", "path", "words"),
    [
        ("127.0.0.1", 0, "", "is no port"),
        ("127.0.0.1", 70000, "", "is no port"),
        ("no.such.host.invalid", 8501, "", "is no address"),
        ("127.0.0.1", 8501, "../x", "is no path"),
        ("127.0.0.1", 8501, "a b", "is no path"),
    ],
)
def test_what_cannot_be_is_refused(host: str, port: int, path: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        command_of(host, port, path)


def test_a_port_in_use_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        with pytest.raises(InputError, match="cannot listen"):
            command_of("127.0.0.1", port, "")


def test_who_can_reach_it_is_told() -> None:
    assert address_line("127.0.0.1", 8501, "") == "servetwin: http://localhost:8501/"
    assert "no password" in address_line("0.0.0.0", 8501, "x")


def test_the_script_stands_apart_from_the_pages() -> None:
    """Streamlit takes files in `pages` beside it for scripts: a link to a page drew nothing."""
    assert SCRIPT.is_file()
    assert not (SCRIPT.parent / "pages").exists()


def test_an_address_of_another_machine_is_the_hosts_fault() -> None:
    with pytest.raises(InputError, match=r"^--host: cannot listen on 192\.0\.2\.1"):
        command_of("192.0.2.1", 8850, "")
