"""The contract of every probe, and that a probe whose kernel is wrong says so."""

import re
from pathlib import Path

import pytest
import torch

from kernels.catalogue import KERNELS
from kernels.device import DeviceFacts, device_facts
from kernels.errors import KernelInputError
from kernels.probes import chase, gather, lifetime_race, offset_copy, products, stream, transfer
from kernels.probes.catalogue import PROBES
from kernels.probes.decode import block_tables
from kernels.probes.kernels import PROBE_KERNELS
from kernels.probes.probe import ProbeError, ends_first, must_agree
from kernels.timing import FakeTimer

GIB = 2**30
FACTS = {
    "141 GB, 50 MiB L2": DeviceFacts((9, 0), 132, 50 * 2**20, 141 * 10**9, 1.98e9),
    "80 GiB, 40 MiB L2": DeviceFacts((8, 0), 108, 40 * 2**20, 80 * GIB, 1.41e9),
    "24 GiB, 72 MiB L2": DeviceFacts((8, 9), 128, 72 * 2**20, 24 * GIB, 2.5e9),
    "12 GiB, 3 MiB L2": DeviceFacts((8, 6), 28, 3 * 2**20, 12 * GIB, 1.8e9),
    "the stand-in": device_facts(torch.device("cpu")),
}
EACH = pytest.mark.parametrize("probe", PROBES.values(), ids=list(PROBES))
SMALL = [
    pytest.param(probe, shape, id=f"{probe.name}-{number}")
    for probe in PROBES.values()
    for number, shape in enumerate(probe.small)
]
FLAGS = {"cold", "random", "library", "shuffled", "pinned", "to_host", "event"}


def needed_bytes(probe, shape):
    """What a shape must at least find room for on the device."""
    if probe.name in ("decode_order", "decode_l2"):
        return 4 * 8 * 128 * shape["seqs"] * shape["context_tokens"]
    if probe.name == "stream":
        return shape["bytes"] * (2 if shape["mode"] == stream.COPY else 1)
    if probe.name == "offset_copy":
        return 2 * shape["bytes"]
    if probe.name in ("lda", "tile_edge"):
        return 2 * (shape["m"] * shape["k"] + shape["n"] * shape["k"] + shape["m"] * shape["n"])
    return shape.get("footprint_bytes", shape.get("bytes", 0))


@EACH
@pytest.mark.parametrize("facts", FACTS.values(), ids=list(FACTS))
def test_a_sweep_asks_each_point_once_and_fits_in_memory(probe, facts):
    shapes = probe.sweep(facts)
    assert shapes
    assert len({tuple(sorted(shape.items())) for shape in shapes}) == len(shapes)
    for shape in (*shapes, *probe.small):
        assert set(shape) == set(probe.axes)
        assert all(type(size) is int and size >= 0 for size in shape.values())
        assert all(shape[axis] in (0, 1) for axis in FLAGS & set(shape))
    # Products and batches of fixed sizes are small for every GPU, though not for the stand-in.
    if facts.memory_bytes >= GIB:
        assert max(needed_bytes(probe, shape) for shape in shapes) < facts.memory_bytes


@EACH
def test_a_probe_tells_what_it_is(probe):
    assert probe is PROBES[probe.name]
    assert probe.what
    assert probe.needs in ("any", "gpu", "gpus")
    assert 0 < probe.box_s <= 90


def test_all_probes_together_take_minutes():
    assert sum(probe.box_s for probe in PROBES.values()) < 420


@pytest.mark.parametrize(("probe", "shape"), SMALL)
def test_small_shapes_run_anywhere(probe, shape, device):
    timer = FakeTimer(lambda: 3e-5)
    if probe.needs == "gpu" and device.type != "cuda":
        with pytest.raises(ProbeError, match="needs a GPU"):
            probe.measure(shape, device, timer)
        return
    timing = probe.measure(shape, device, timer)
    assert len(timing.seconds) >= 20
    assert 0 < timing.median_s <= timing.p90_s
    if device.type != "cuda":
        assert timer.launches == 1
        assert timing.median_s <= 3e-5


@EACH
def test_other_axes_are_refused(probe, device):
    with pytest.raises(KernelInputError, match="axes"):
        probe.measure({"colour": 1}, device, FakeTimer(lambda: 1e-5))


def test_the_probes_kernels_are_in_the_catalogue():
    assert all(KERNELS[kernel.name] is kernel for kernel in PROBE_KERNELS)


def measure(name, device):
    """Run a probe's small shapes."""
    for shape in PROBES[name].small:
        PROBES[name].measure(shape, device, FakeTimer(lambda: 1e-5))


def nothing(*args, **kwargs):
    """A kernel that does nothing."""


@pytest.mark.parametrize(
    ("module", "launcher", "probe"),
    [
        (stream, "stream", "stream"),
        (stream, "stream", "l2_sweep"),
        (gather, "gather", "gather"),
        (offset_copy, "offset_copy", "offset_copy"),
        (products, "_library", "tile_edge"),
        (transfer, "_copying", "transfer"),
    ],
)
def test_a_kernel_that_does_nothing_is_caught(module, launcher, probe, device, monkeypatch):
    replacement = (lambda pieces: nothing) if launcher == "_copying" else nothing
    monkeypatch.setattr(module, launcher, replacement)
    with pytest.raises(ProbeError, match=r"wrong|otherwise"):
        measure(probe, device)


def test_a_product_that_ignores_the_leading_dimension_is_caught(device, monkeypatch):
    def dense(a, b, out):
        packed = torch.as_strided(a, a.shape, (a.shape[1], 1))
        return torch.matmul(packed, b, out=out)

    monkeypatch.setattr(products, "_library", dense)
    with pytest.raises(ProbeError, match="wrong"):
        measure("lda", device)


def test_a_copy_beyond_its_end_is_caught(device, monkeypatch):
    def long(source, target):
        target.copy_(source)
        torch.as_strided(target, (len(target) + 1,), (1,))[-1] = 7.0

    monkeypatch.setattr(offset_copy, "offset_copy", long)
    with pytest.raises(ProbeError, match="copied wrongly"):
        measure("offset_copy", device)


def test_a_walk_that_leaves_its_chain_is_caught(device, monkeypatch):
    def astray(chain_, start, end, steps):
        end.fill_(-1)
        chain_[-1] = len(chain_) + 5

    monkeypatch.setattr(chase, "chase", astray)
    with pytest.raises(ProbeError, match=r"left its chain|ended elsewhere"):
        measure("chase", device)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("footprint", "stride"), [(256, 128), (2**16, 128), (2**17, 4096)])
def test_a_chain_is_one_ring_with_one_node_in_each_stride(footprint, stride, shuffled, device):
    chain, first = chase.make_chain(footprint, stride, shuffled, device, seed=3)
    followed, at = [], first
    for _ in range(footprint // stride):
        followed.append(at)
        at = int(chain[at])
    assert at == first
    assert sorted(8 * node // stride for node in followed) == list(range(footprint // stride))
    assert all(8 * node % 128 == 0 for node in followed)
    assert shuffled or followed == sorted(followed)


def test_chains_of_one_node_or_half_a_line_are_refused(device):
    with pytest.raises(KernelInputError, match="two strides"):
        chase.make_chain(255, 128, False, device)
    with pytest.raises(KernelInputError, match="multiple of 128"):
        chase.make_chain(4096, 192, False, device)


def test_block_tables_hold_each_block_once(device):
    ordered = block_tables(3, 33, 16, False, device)
    mixed = block_tables(3, 33, 16, True, device)
    assert ordered.tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert mixed.tolist() != ordered.tolist()
    assert sorted(mixed.flatten().tolist()) == list(range(9))


def test_a_race_is_seen_and_a_fence_holds(device):
    block = torch.empty(4096, dtype=torch.int32, device=device)
    copied, zero = torch.empty_like(block), torch.zeros(1, dtype=torch.int32, device=device)
    own = torch.arange(4096, dtype=torch.int32, device=device)
    lifetime_race._torn_turn(block, copied, zero, own)
    assert lifetime_race.foreign_words(copied, own) == 2048
    lifetime_race._fenced_turn(block, copied, zero, own)
    assert lifetime_race.foreign_words(copied, own) == 0


def test_a_fence_that_leaks_and_a_race_that_is_none_are_errors():
    lifetime_race.judge(0, fenced=True)
    lifetime_race.judge(5, fenced=False)
    with pytest.raises(ProbeError, match="in spite of an event"):
        lifetime_race.judge(1, fenced=True)
    with pytest.raises(ProbeError, match="no foreign word"):
        lifetime_race.judge(0, fenced=False)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 33])
def test_ends_first_keeps_every_point_and_spreads_the_first_ones(count):
    points = list(range(count))
    ordered = ends_first(points)
    assert sorted(ordered) == points
    if count > 4:
        assert set(ordered[:3]) == {0, count - 1, (count - 1) // 2}


def test_agreement_is_relative_to_the_largest_and_refuses_nan():
    want = torch.tensor([100.0, 1.0])
    must_agree("x", torch.tensor([100.5, 1.0]), want, 0.01)
    for have in ([102.0, 1.0], [float("nan"), 1.0]):
        with pytest.raises(ProbeError, match="x: the kernel is wrong"):
            must_agree("x", torch.tensor(have), want, 0.01)


def test_the_page_of_probes_tells_each_with_its_axes():
    text = (Path(__file__).resolve().parents[2] / "docs" / "probes.md").read_text(encoding="utf-8")
    told = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `"):
            told[cells[0].strip("`")] = (tuple(re.findall(r"`([a-z_]+)`", cells[1])), cells[2])
    assert {name: axes for name, (axes, _) in told.items()} == {
        name: probe.axes for name, probe in PROBES.items()
    }
    assert all(
        what.replace("`", "") == PROBES[n].what.replace("`", "") for n, (_, what) in told.items()
    )
