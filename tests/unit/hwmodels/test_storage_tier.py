"""Storage tiers: what they answer, and what a damaged file is told."""

import json
from dataclasses import replace

import pytest

from hwmodels.storage_tier import (
    DirectIoFacts,
    StorageTier,
    TierError,
    TierHeldOut,
    TierLine,
    TierProvenance,
    TierRow,
    read_tier,
    shipped_tiers,
    write_tier,
)

LINE = TierLine("read", "direct", 1, 80e-6, 10e-6, 2e9, 1.1, 1.9, 8)
TIER = StorageTier(
    name="nvme",
    provenance=TierProvenance("/dev/nvme0n1", "xfs", "Linux 6.8", "2026-11-30", ""),
    direct_io=DirectIoFacts("", {"buffer": 4, "offset": 512, "length": 512}, ("buffer: EINVAL",)),
    lines=(
        LINE,
        replace(LINE, queue_depth=16, alpha_s=160e-6, per_fragment_s=20e-6, bytes_per_s=1e9),
        TierLine("write", "buffered", 4, 0.0, None, 4e9, 3.0, 12.0, 6),
    ),
    held_out=(TierHeldOut("read", "direct", 4.0, 12.0, 14, "sizes"),),
    rows=(TierRow("read", "direct", 1, 4096, 1, 100, 1e-4, 9e-5, 2e-4, 3e-4, 4e7),),
)


def test_a_block_takes_alpha_and_its_fragments_and_its_bytes():
    one = TIER.seconds("read", "direct", 2e6)
    assert one == pytest.approx(80e-6 + 10e-6 + 1e-3)
    assert TIER.seconds("read", "direct", 2e6, fragments=8) == pytest.approx(one + 70e-6)


def test_between_depths_seconds_follow_a_power_and_beyond_the_last_they_grow_with_it():
    seconds = {n: TIER.seconds("read", "direct", 1e6, queue_depth=n) for n in (1, 4, 16, 32)}
    assert seconds[4] == pytest.approx((seconds[1] * seconds[16]) ** 0.5)
    assert seconds[16] == pytest.approx(160e-6 + 20e-6 + 1e-3)
    assert seconds[32] == pytest.approx(2 * seconds[16])


@pytest.mark.parametrize(
    ("direction", "mode", "more", "told"),
    [
        ("read", "cached", {}, "read cached was not measured; read direct, write buffered were"),
        ("write", "buffered", {"queue_depth": 1}, "queue depth 1 is below 4"),
        ("write", "buffered", {"queue_depth": 4, "fragments": 2}, "no fragments were measured"),
    ],
)
def test_what_was_not_measured_is_not_answered(direction, mode, more, told):
    with pytest.raises(TierError, match=told):
        TIER.seconds(direction, mode, 4096, **more)


def test_a_tier_survives_its_file(tmp_path):
    path = tmp_path / "nvme.json"
    path.write_text(write_tier(TIER))
    assert read_tier(path) == TIER
    assert write_tier(read_tier(path)) == path.read_text()


def damaged(change):
    data = json.loads(write_tier(TIER))
    change(data)
    return json.dumps(data)


DAMAGES = {
    "no JSON": ("{", "is not a storage tier"),
    "a list": ("[]", "no JSON object"),
    "a text": ('"tier"', "no JSON object"),
    "another schema": (damaged(lambda d: d.update(schema_version=9)), "tier schema 9"),
    "a key gone": (damaged(lambda d: d.pop("rows")), "lacks rows"),
    "a key too many": (damaged(lambda d: d.update(colour=1)), "unknown key colour"),
    "no lines": (damaged(lambda d: d.update(lines=[])), "lines is empty"),
    "lines no list": (damaged(lambda d: d.update(lines={})), "lines is no list"),
    "a line no object": (damaged(lambda d: d["lines"].append(3)), r"lines\[3\] is no object"),
    "a line twice": (damaged(lambda d: d["lines"].append(d["lines"][0])), "read direct 1 twice"),
    "a field gone": (damaged(lambda d: d["lines"][0].pop("alpha_s")), r"lines\[0\]: lacks alpha_s"),
    "no rate": (damaged(lambda d: d["lines"][0].update(bytes_per_s=0)), "bytes_per_s is 0"),
    "a negative time": (damaged(lambda d: d["lines"][0].update(alpha_s=-1)), "alpha_s is -1"),
    "a text for a time": (damaged(lambda d: d["lines"][0].update(alpha_s="x")), "alpha_s is 'x'"),
    "half a depth": (damaged(lambda d: d["lines"][0].update(queue_depth=1.5)), "queue_depth is 1"),
    "a truth": (damaged(lambda d: d["rows"][0].update(operations=True)), "operations is True"),
    "nothing": (damaged(lambda d: d["rows"][0].update(block_bytes=None)), "block_bytes is None"),
    "no number": (
        write_tier(TIER).replace('"alpha_s": 8e-05', '"alpha_s": NaN'),
        r"lines\[0\].alpha_s is nan",
    ),
    "past all floats": (
        write_tier(TIER).replace('"operations": 100', '"operations": 1' + "0" * 400),
        "is not a storage tier",
    ),
    "a mode of the other": (
        damaged(lambda d: d["lines"][0].update(io_mode="synced")),
        "unknown 'read' mode 'synced'",
    ),
    "no direction": (damaged(lambda d: d["rows"][0].update(direction="up")), "unknown 'up' mode"),
    "a date no text": (damaged(lambda d: d["provenance"].update(date=7)), "provenance.date is 7"),
    "no name": (damaged(lambda d: d.update(name="")), "name is ''"),
    "alignment of words": (damaged(lambda d: d["direct_io"].update(least_bytes=[])), "least_bytes"),
}


@pytest.mark.parametrize(("text", "told"), DAMAGES.values(), ids=list(DAMAGES))
def test_damage_is_one_line_that_names_the_file(text, told, tmp_path):
    path = tmp_path / "tier.json"
    path.write_text(text)
    with pytest.raises(TierError, match=told) as found:
        read_tier(path)
    assert str(found.value).startswith(f"{path}: ")
    assert "\n" not in str(found.value)


def test_a_file_that_is_not_there_and_one_that_is_no_text(tmp_path):
    with pytest.raises(TierError, match="no such storage tier"):
        read_tier(tmp_path / "none.json")
    path = tmp_path / "tier.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TierError, match="is not a storage tier"):
        read_tier(path)


@pytest.mark.parametrize("name", sorted(shipped_tiers()))
def test_a_shipped_tier_is_whole(name):
    path = shipped_tiers()[name]
    tier = read_tier(path)
    assert tier.name == name
    assert write_tier(tier) == path.read_text()
    assert tier.rows
    assert tier.held_out
    for line in tier.lines:
        assert tier.seconds(line.direction, line.io_mode, 2**20, queue_depth=line.queue_depth) > 0
