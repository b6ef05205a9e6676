import numpy as np
import pytest

from app.answers.capacity.block_sizes import block_sentence, block_sizes, block_table
from app.answers.capacity.lengths import lengths_of
from app.answers.setup import Setup


@pytest.fixture(scope="module")
def sizes():
    return block_sizes(Setup("chat-h100"))


def test_tokens_lost_are_what_is_left_of_last_blocks(sizes):
    scenario = Setup("chat-h100").scenario()
    lengths = lengths_of(scenario.workload, 0, scenario.policy.max_model_len)
    held = lengths.prompt + lengths.output - 1
    for size in sizes:
        lost = -held % size.tokens
        assert size.lost_tokens == pytest.approx(lost.mean())
        assert size.lost_share == pytest.approx(lost.sum() / (held + lost).sum())
        assert size.shared_share == pytest.approx(
            np.sum(lengths.shared // size.tokens * size.tokens) / lengths.prompt.sum()
        )


def test_larger_blocks_lose_more_and_share_less(sizes):
    assert [size.tokens for size in sizes] == [8, 16, 32, 64, 128]
    assert [size.own for size in sizes] == [False, True, False, False, False]
    lost = [size.lost_share for size in sizes]
    assert lost == sorted(lost)
    shared = [size.shared_share for size in sizes]
    assert shared == sorted(shared, reverse=True)
    assert sizes[0].blocks > 15 * sizes[-1].blocks


def test_the_sentence_names_the_scenarios_own_size(sizes):
    words = block_sentence(sizes, caching=True)
    assert words.startswith("Blocks of 16 tokens lose ")
    assert "whatever the size" in words  # its prefixes are whole blocks of every size
    assert block_sentence(sizes, caching=False).endswith("so that none is.")
    assert block_table(sizes)["Tokens a block"][1] == "16 (now)"


def test_requests_without_common_prefixes_share_nothing():
    words = block_sentence(block_sizes(Setup("closed-loop-h100")), caching=True)
    assert words.endswith("prompts share nothing, whatever the size.")


def test_sglang_has_pages_of_one_token():
    sizes = block_sizes(Setup("chat-h100", None, {"engine.name": "sglang"}))
    assert sizes[0].tokens == 1
    assert sizes[0].own
    assert sizes[0].lost_tokens == 0
