"""An app started as a user starts it, and the browser to look at it with."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

OUR_FAILURE = "servetwin: failed to draw"
"""What the app writes before the traceback of whatever went wrong on a page."""

CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


def chromium_path() -> str:
    """Return where Chromium is.

    Raises:
        FileNotFoundError: it is not installed.
    """
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    raise FileNotFoundError("no Chromium on this machine; on Debian: apt-get install chromium")


@contextmanager
def served(home: Path) -> Iterator[str]:
    """Run the app; yield its address. Nothing may have gone wrong in it until the end.

    Args:
        home: where it keeps studies and its log.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    log = home / "server.log"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SERVETWIN_HOME": str(home)}
    command = [sys.executable, "-P", "-m", "app", "--port", str(port)]
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(address, process, log)
        yield address
    finally:
        process.terminate()
        process.wait(10)
    # Streamlit itself writes one where a browser leaves in the middle of a message.
    assert OUR_FAILURE not in log.read_text(), log.read_text()[-3000:]


def _wait(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until = time.monotonic() + 120
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=1) as answer:
                if answer.read() == b"ok":
                    return
        except OSError:
            time.sleep(0.3)
    raise AssertionError(f"no health after two minutes: {log.read_text()}")
