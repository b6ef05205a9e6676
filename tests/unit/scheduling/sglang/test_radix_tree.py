"""The tree of cached prefixes."""

import pytest

from twin.errors import InputError
from twin.scheduling.sglang.eviction import EVICTION_KEYS
from twin.scheduling.sglang.radix_tree import RadixTree
from twin.scheduling.sglang.validation import EVICTION_POLICIES


def keys(text: str) -> list[str]:
    return list(text)


def put(tree: RadixTree, text: str, **options: int) -> int:
    """Insert and return how many keys were there before."""
    return tree.insert(keys(text), len(text), **options)[1]


def found(tree: RadixTree, text: str) -> int:
    return tree.match(keys(text), len(text))[1]


def contents(tree: RadixTree) -> list[str]:
    """Every node, as the text from the root to its end."""
    texts = {tree.root: ""}
    for node in tree.nodes():
        assert node.parent is not None
        texts[node] = texts[node.parent] + "".join(map(str, node.keys))
    return sorted(text for node, text in texts.items() if node is not tree.root)


def test_insert_shares_what_is_there_and_splits_where_it_ends() -> None:
    tree = RadixTree()
    assert put(tree, "abcdef") == 0
    assert put(tree, "abcxyz") == 3
    assert put(tree, "ab") == 2
    assert contents(tree) == ["ab", "abc", "abcdef", "abcxyz"]
    assert (tree.evictable, tree.protected) == (9, 0)


def test_match_finds_the_longest_prefix_and_splits() -> None:
    tree = RadixTree()
    put(tree, "abcdef")
    node, count = tree.match(keys("abcx"), 4)
    assert count == 3
    assert "".join(map(str, node.keys)) == "abc"
    assert contents(tree) == ["abc", "abcdef"]
    assert found(tree, "xyz") == 0
    assert tree.match(keys("abcdef"), 2)[1] == 2  # of the first two only
    assert tree.match([], 0) == (tree.root, 0)


def test_keys_may_stand_for_several_tokens() -> None:
    tree = RadixTree(key_tokens=16)
    put(tree, "abc")
    assert tree.evictable == 48
    tree.lock(tree.match(keys("ab"), 2)[0])
    assert (tree.evictable, tree.protected) == (16, 32)
    assert tree.evict(1) == 16


def test_a_lock_counts_on_the_whole_path_and_survives_a_split() -> None:
    tree = RadixTree()
    node, _ = tree.insert(keys("abcdef"), 6)
    tree.lock(node)
    put(tree, "abcx")
    assert (tree.evictable, tree.protected) == (1, 6)
    assert tree.evict(100) == 1
    assert contents(tree) == ["abc", "abcdef"]
    tree.unlock(node)
    assert (tree.evictable, tree.protected) == (6, 0)
    assert tree.evict(100) == 6
    assert contents(tree) == []


def test_the_least_recently_used_leaf_goes_whole_and_its_parent_after_it() -> None:
    tree = RadixTree()
    put(tree, "abcd")
    put(tree, "abxyz")
    put(tree, "q")
    found(tree, "abcd")
    assert tree.evict(1) == 3  # xyz is the oldest
    assert tree.evict(1) == 1  # q
    assert tree.evict(1) == 2  # cd, touched after q
    assert contents(tree) == ["ab"]
    assert tree.evict(5) == 2
    assert tree.evict(5) == 0


def test_lfu_counts_a_request_once_a_node() -> None:
    tree = RadixTree(policy="lfu")
    put(tree, "often")
    put(tree, "often")
    put(tree, "often", counted=5)  # the same request once more
    put(tree, "rare")
    assert sorted(node.hits for node in tree.nodes()) == [1, 2]
    tree.evict(1)
    assert contents(tree) == ["often"]


def test_slru_protects_what_was_hit_twice() -> None:
    tree = RadixTree(policy="slru")
    put(tree, "a")
    put(tree, "a")
    put(tree, "b")
    put(tree, "c")
    tree.evict(1)
    assert contents(tree) == ["a", "c"]
    tree.evict(1)
    assert contents(tree) == ["a"]


def test_priority_keeps_the_larger() -> None:
    tree = RadixTree(policy="priority")
    put(tree, "a", priority=2)
    put(tree, "b", priority=1)
    put(tree, "c", priority=1)
    tree.evict(2)
    assert contents(tree) == ["a"]


def test_tlru_takes_what_a_conversation_need_not_keep() -> None:
    # Of 10 tokens, 10 - 6 must stay: the tail is safe to lose, though it was used last. Of the
    # other conversation's 8 tokens 2 must stay, so it may not go as a whole.
    tree = RadixTree(policy="tlru", tlru=(6, 0))
    put(tree, "xxxxxxxx")
    put(tree, "aaaa")
    put(tree, "aaaabbbbbb")
    tree.evict(1)
    assert contents(tree) == ["aaaa", "xxxxxxxx"]
    # What it once was still counts, so that it is not trimmed down to nothing: the rest is LRU.
    tree.evict(1)
    assert contents(tree) == ["aaaa"]


def test_old_entries_of_the_queue_are_dropped() -> None:
    tree = RadixTree()
    for text in "abc":
        put(tree, text)
    for _ in range(5000):
        found(tree, "a")
    assert len(tree._leaves._heap) <= 1025
    tree.evict(2)
    assert contents(tree) == ["a"]


def test_every_policy_has_an_order() -> None:
    assert set(EVICTION_POLICIES) == EVICTION_KEYS.keys()
    with pytest.raises(InputError, match="unknown eviction policy 'lur'; did you mean 'lru'"):
        RadixTree(policy="lur")


def test_asking_how_much_is_cached_touches_and_splits_nothing():
    tree = RadixTree(1)
    tree.insert([1, 2, 3, 4], 4)
    tree.insert([1, 2, 5], 3)
    asked = [[1, 2, 3, 9], [1, 2, 3, 4, 5], [1], [7], []]
    before = [sorted(child.keys for child in tree.root.children.values())]
    counted = [tree.cached_keys(keys) for keys in asked]
    assert counted == [3, 4, 1, 0, 0]
    assert [sorted(child.keys for child in tree.root.children.values())] == before
    assert counted == [tree.match(keys, len(keys))[1] for keys in asked]
