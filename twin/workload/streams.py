"""One random stream a purpose, so that a change to one never shifts another."""

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a random stream is for; the number is part of the seed and never reused."""

    ARRIVALS = 0
    PROMPTS = 1
    OUTPUTS = 2
    SAMPLING = 3
    SESSIONS = 4
    PRIORITIES = 5
    PREFIXES = 6
    THINKING = 7
    ROUTING = 8
    FAILURES = 9
    CLIENTS = 10


def generator(seed: np.random.SeedSequence, stream: Stream) -> np.random.Generator:
    """Return the generator of one stream; unlike `seed.spawn` this leaves `seed` as it is."""
    child = np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, int(stream)))
    return np.random.default_rng(child)
