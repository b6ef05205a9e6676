"""Fixtures every test may use."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# `make audit`: 5 times the usual number of examples (tests/properties/effort.py).
settings.register_profile("audit", max_examples=500, print_blob=True)

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of measured data; absent: skip, or fail under SERVETWIN_REQUIRE_DATA=1."""
    folder = Path(os.environ.get("SERVETWIN_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        reason = f"measured data not found at {folder}; set SERVETWIN_DATA to its folder"
        if os.environ.get("SERVETWIN_REQUIRE_DATA") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
