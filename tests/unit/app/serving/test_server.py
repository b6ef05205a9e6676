import pytest

pytest.importorskip("streamlit")

from streamlit.runtime.pages_manager import PagesManager
from streamlit.web import cli

from app.serving import server


def test_files_of_pages_are_no_pages_of_their_own_before_the_script_has_run(monkeypatch):
    """Else a server's first visit by a page's address would draw nothing."""
    monkeypatch.setattr(PagesManager, "uses_pages_directory", None)
    monkeypatch.setattr(server, "warm", lambda: None)
    monkeypatch.setattr(cli, "main", lambda args, standalone_mode: 0)
    assert server.main([]) == 0
    manager = PagesManager(str(server.SCRIPT), None)
    assert (server.SCRIPT.parent / "pages").is_dir()
    assert manager.uses_pages_directory is False
