"""The judging that passes the attention kernels rejects kernels with a fault put in."""

import importlib
import itertools
import shutil
from pathlib import Path

import pytest

import kernels.attention
from kernels.judging import case_error

SOURCE = Path(kernels.attention.__file__).parent
NUMBERS = itertools.count()

NO_NORMALISATION = {
    "paged_decode.py": {
        "normalised(total, summed)": "normalised(tl.where(length % 128 == 0, total, 1.0), summed)"
    }
}
FP16_SUMS = {
    "tiles.py": {
        "return top, total, summed": "return top, total, summed.to(tl.float16).to(tl.float32)"
    }
}
STALE_TABLE = {
    "tiles.py": {
        "table + start // BLOCK": "table + tl.maximum(start // BLOCK - 1, 0)",
        "table + at // BLOCK": "table + tl.maximum(at // BLOCK - 1, 0)",
    }
}
STALE_LAST_BLOCK = {
    "tiles.py": {
        "table + at // BLOCK, mask=seen": "table + at // BLOCK, mask=seen & (at // BLOCK < 2)"
    }
}
NO_TAIL_MASK = {
    "paged_decode.py": {
        "keys + cached, mask=seen[:, None], other=0.0": "keys + cached",
        "values + cached, mask=seen[:, None], other=0.0": "values + cached",
        "seen[None, :]": "(tokens >= 0)[None, :]",
    }
}
TAIL_COUNTED_AS_ZEROS = {"paged_decode.py": {"seen[None, :]": "(tokens >= 0)[None, :]"}}

FAULTS = {
    "skips normalisation unless the length is a multiple of 128": NO_NORMALISATION,
    "accumulates in fp16": FP16_SUMS,
    "reads the block table one entry behind": STALE_TABLE,
    "reads another's block in place of the newest": STALE_LAST_BLOCK,
    "lacks the tail mask": NO_TAIL_MASK,
    "counts tokens beyond the context as zeros": TAIL_COUNTED_AS_ZEROS,
}


def attention_with(faults, folder, monkeypatch):
    """Return a copy of the decode kernel whose files have texts replaced, each exactly once.

    Triton reads a kernel's source from its file: so the copy is a package in a folder.
    """
    package = f"seeded_attention_{next(NUMBERS)}"
    shutil.copytree(SOURCE, folder / package)
    for path in (folder / package).glob("*.py"):
        text = path.read_text().replace("kernels.attention", package)
        for old, new in faults.get(path.name, {}).items():
            assert text.count(old) == 1, f"{path.name} has {old!r} {text.count(old)} times"
            text = text.replace(old, new)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    return importlib.import_module(f"{package}.decode_cases").PAGED_DECODE


def verdicts(kernel, dtype, device):
    """Judge as the contract of the catalogue does: whether each shape passes."""
    for shape in kernel.shapes:
        case = kernel.make_case(shape, dtype, device, 7)
        yield case_error(case) <= case.tolerance


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_a_fault_is_rejected(fault, dtype, device, tmp_path, monkeypatch):
    kernel = attention_with(fault, tmp_path, monkeypatch)
    assert not all(verdicts(kernel, dtype, device))


def test_the_same_copy_without_a_fault_is_accepted(device, tmp_path, monkeypatch):
    kernel = attention_with({}, tmp_path, monkeypatch)
    assert all(verdicts(kernel, "float16", device))
