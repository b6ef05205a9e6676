"""A PostgreSQL of the tests' own: its folder, its socket, gone afterwards."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest


def binaries() -> Path:
    """Return the folder of `initdb` and `postgres`; none: skip, or fail where data is required."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    named = shutil.which("initdb")
    if named is not None:
        found.append(Path(named))
    if found:
        return found[-1].parent
    reason = "no PostgreSQL found (initdb); on Debian: apt-get install postgresql"
    if os.environ.get("SERVETWIN_REQUIRE_DATA") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def _unprivileged() -> dict:
    """Return how to start a process as somebody whom initdb accepts: it refuses root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@contextmanager
def running_postgres():
    """Yield the URL of a server that listens on a socket only."""
    bin_folder, account = binaries(), _unprivileged()
    folder = Path(tempfile.mkdtemp(prefix="twin-pg-"))
    if account:
        os.chown(folder, account["user"], account["group"])
    data = folder / "data"
    log = folder / "log"
    quiet = {"cwd": folder, "stdin": subprocess.DEVNULL, **account}
    server = None
    try:
        subprocess.run(
            [bin_folder / "initdb", "-D", data, "-A", "trust", "-U", "twin", "--no-sync"],
            check=True, capture_output=True, **quiet,
        )  # fmt: skip
        with open(log, "wb") as out:
            server = subprocess.Popen(
                # What is killed here are clients, not the server: it need not wait for the disk.
                [bin_folder / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=",
                 "-c", "fsync=off"],
                stdout=out, stderr=out, **quiet,
            )  # fmt: skip
        url = f"postgresql://twin@/postgres?host={folder}"
        _wait(url, server, log)
        yield url
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # without waiting for sessions to end
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(url, server, log):
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        else:
            return
