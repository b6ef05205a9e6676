"""`python -m app.serving.server FLAGS`: get ready for the first visitor, then run Streamlit.

Without this the first visitor would wait for imports, compiled code and the first forecast.
"""

import os
import sys
from pathlib import Path

from app.answers.forecast.forecast import forecast
from app.answers.kept import SHARED
from app.answers.setup import Setup
from app.serving.settings import READY
from app.state.view import FIRST
from twin.errors import ServetwinError

SCRIPT = Path(__file__).resolve().parent / "script.py"


def warm() -> None:
    """Work out what a first visit shows; a server starts even where that fails."""
    import app.navigation  # noqa: F401 (every page, so that no visitor waits for its imports)

    setup = Setup(FIRST)
    try:
        SHARED.put(setup.digest(), forecast(setup))
    except ServetwinError as error:
        print(f"warning: {error}", file=sys.stderr)


def main(flags: list[str]) -> int:
    """Run the app with Streamlit's flags; return its exit code."""
    from streamlit.web import cli

    warm()
    print(os.environ.pop(READY, ""), flush=True)
    return int(cli.main(["run", str(SCRIPT), *flags], standalone_mode=False) or 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
