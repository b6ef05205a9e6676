"""`twin cache`: what it refuses."""

from pathlib import Path

import pytest

from tests.unit.caching.traces import SESSIONS, written
from tests.unit.cli.refused.one_line import assert_one_line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("cache", "none.jsonl"), "none.jsonl"),
        (("cache", "plain.jsonl"), "does not tell which prompts share a prefix"),
        (("cache", "blocks.jsonl", "--policies", "lru,lfo"), "did you mean 'lfu'?"),
        (("cache", "blocks.jsonl", "--capacities", "10,1GiB"), "name one with --llm"),
        (("cache", "blocks.jsonl", "--capacities", "10,"), "not a size in bytes"),
        (("cache", "blocks.jsonl", "--block-size", "4096"), "no prompt fills a block"),
        (("cache", "blocks.jsonl", "--llm", "llama-3.1-8"), "did you mean"),
        (("cache", "blocks.jsonl", "--kv-cache-dtype", "fp8"), "name one with --llm"),
        (("cache", "blocks.jsonl", "--llm", "llama-3.1-8b", "--kv-cache-dtype", "fp9"), "fp9"),
        (("cache", "blocks.jsonl", "--ttl", "0"), "give seconds above 0"),
        (("cache", "blocks.jsonl", "--csv", "a.csv", "--html", "a.csv"), "--html writes there too"),
        (("cache", "blocks.jsonl", "--svg", "blocks.jsonl"), "would replace the input"),
        (("cache", "blocks.jsonl", "--gpu", "h100"), "did you mean 'h100_sxm'?"),
        (
            ("cache", "blocks.jsonl", "--gpu", "h100_sxm", "--capacities", "9"),
            "add gpu to --capacities",
        ),
    ],
)
def test_bad_arguments(twin, arguments, says):
    written(Path(), SESSIONS, "blocks.jsonl")
    Path("plain.jsonl").write_text('{"timestamp": 0, "input_length": 9, "output_length": 1}\n')
    assert_one_line(twin(*arguments), says)
