import pytest

from twin.llm.cuda_graphs import capture_sizes, padded


def test_default_sizes():
    sizes = capture_sizes(256, 8192)
    assert sizes[:6] == (1, 2, 4, 8, 16, 24)
    assert sizes[-1] == 512
    assert 248 in sizes
    assert 256 in sizes
    assert 264 not in sizes
    assert 272 in sizes
    assert len(sizes) == 3 + 31 + 17


@pytest.mark.parametrize(
    ("max_num_seqs", "largest"), [(1, 2), (4, 8), (5, 8), (128, 256), (255, 496), (1024, 512)]
)
def test_largest_is_twice_the_sequences_at_most_512(max_num_seqs, largest):
    assert capture_sizes(max_num_seqs, 8192)[-1] == largest


def test_budget_below_the_cap_is_captured_itself():
    assert capture_sizes(256, 100)[-2:] == (96, 100)
    assert capture_sizes(256, 512)[-1] == 512
    assert capture_sizes(256, 513)[-1] == 512
    assert capture_sizes(256, 3) == (1, 2, 3)


def test_variants():
    assert capture_sizes(1024, 8192, datacenter_blackwell=True)[-1] == 1024
    assert capture_sizes(64, 8192, decode_query_len=3)[-1] == 384
    interactive = capture_sizes(64, 8192, interactive=True)
    assert interactive[:33] == (*range(1, 33), 40)
    assert interactive[-1] == 128


def test_padding_to_the_next_size_and_none_above():
    sizes = capture_sizes(256, 8192)
    assert [padded(n, sizes) for n in (1, 3, 9, 16, 17, 249, 257, 512)] == [
        1, 4, 16, 16, 24, 256, 272, 512,
    ]  # fmt: skip
    assert padded(513, sizes) is None
    assert padded(1, ()) is None
