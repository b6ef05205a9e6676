"""Pages draw: each is short enough to be read at a glance, and stands in the table."""

from pathlib import Path

from app import pages
from app.navigation import PAGES

FOLDER = Path(pages.__file__).parent
MOST_LINES = 200


def test_page_files_are_short_and_in_the_table() -> None:
    files = [path for path in FOLDER.glob("*.py") if path.name != "__init__.py"]
    assert {path.stem for path in files} == {
        page.draw.__module__.rpartition(".")[2] for page in PAGES
    }
    for path in files:
        assert len(path.read_text().splitlines()) <= MOST_LINES, path.name
