"""Keys of blocks that are gone: what a policy remembers of them."""

from collections import OrderedDict

Ghosts = OrderedDict[int, None]
"""Keys, the one that went first before all."""


def remember(ghosts: Ghosts, key: int) -> None:
    """Add a key as the last one."""
    ghosts[key] = None
    ghosts.move_to_end(key)


def forget_beyond(ghosts: Ghosts, most: int) -> None:
    """Drop the first keys until at most `most` are left."""
    for _ in range(len(ghosts) - (most if most > 0 else 0)):
        ghosts.popitem(last=False)
