"""Claims beside computed figures: live, complete, and as the physics has it."""

import re
from dataclasses import replace

from hwmodels.memory import fits, published
from twin.memory import claims
from twin.memory.claims import judged_claims


def by_id(ident):
    return [claim for claim in judged_claims() if claim.id == ident]


def test_every_failure_mode_about_memory_is_judged():
    assert {claim.id for claim in judged_claims()} == {
        "F06", "F07", "F09", "F12", "F26", "F29", "F31", "F36", "F37", "F38",
    }  # fmt: skip


def test_every_claim_has_a_number():
    for claim in judged_claims():
        assert re.search(r"\d", claim.computed), claim.id
        assert claim.verdict in ("impossible as stated", "other mechanism", "holds")
        assert set(claim.as_dict()) == {"id", "claimed", "computed", "verdict"}


def test_figures_are_computed_when_asked_for(monkeypatch):
    """Another GPU, other figures: nothing is typed in."""
    before = {claim.claimed: claim.computed for claim in judged_claims()}
    slow = {name: replace(fit, dram_cycles=1000.0) for name, fit in published.MEMORY_FITS.items()}
    monkeypatch.setattr(claims, "MEMORY_FITS", slow)
    after = {claim.claimed: claim.computed for claim in judged_claims()}
    moved = {text for text in before if before[text] != after[text]}
    assert any("stall" in text for text in moved)
    assert fits.MEMORY_FITS["a100_sxm"].dram_cycles == 551


def test_pages_and_lines_of_an_offset():
    assert "one access in 16,384" in by_id("F06")[0].computed
    assert "lines a request 1 -> 2, sectors 4 -> 4" in by_id("F06")[0].computed
    assert by_id("F06")[0].verdict == "impossible as stated"


def test_a_layout_costs_across_layers_only():
    claim = by_id("F06")[1]
    assert " 0 us more with a tensor a layer" in claim.computed
    assert float(re.search(r", (\d+) us \(", claim.computed)[1]) > 0


def test_waste_falls_with_length():
    shares = [float(x) for x in re.findall(r": ([\d.]+) %", by_id("F07")[1].computed)]
    assert shares == sorted(shares, reverse=True)
    assert by_id("F07")[1].verdict == "impossible as stated"
    assert "397 -> 512 (+29.0 %" in by_id("F07")[2].computed
    assert "601 -> 640 (+6.5 %" in by_id("F07")[2].computed


def test_bandwidth_bounds_a_token():
    claim = by_id("F31")[0]
    a100, h100 = (float(x) for x in re.findall(r"([\d.]+) ms", claim.computed))
    assert 40 <= a100 <= 41
    assert 24 <= h100 <= 25
    assert claim.verdict == "impossible as stated"


def test_reservations_are_batches():
    assert re.findall(r"\((\d+) sequences", by_id("F29")[0].computed) == ["12", "19"]


def test_a_step_is_not_scanned_16_times():
    step = float(re.search(r"([\d.]+)x the step", by_id("F26")[0].computed)[1])
    assert 1 < step < 16


def test_banks_and_alignment():
    assert "at most 4,224 a cycle" in by_id("F37")[0].computed
    assert "32-way, of 129 1-way" in by_id("F37")[0].computed
    assert "1025: 2 bytes" in by_id("F38")[0].computed
    assert "every 8th" in by_id("F38")[0].computed
