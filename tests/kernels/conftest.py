"""Kernel tests run in Triton's interpreter unless there is a GPU."""

import os
from importlib.util import find_spec

import pytest

# Without torch and Triton (see the Makefile) there is nothing to collect here.
INSTALLED = find_spec("torch") is not None and find_spec("triton") is not None
collect_ignore_glob = [] if INSTALLED else ["*.py"]

if INSTALLED:
    import torch

    # Triton decides when a kernel is defined; so before any kernel is imported.
    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def device():
    """Where kernels run."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
