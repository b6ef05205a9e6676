"""The open-addressed table from keys to blocks is a dictionary."""

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st

from twin.engine.compiled import layout, paging

KEYS = st.one_of(st.integers(-40, 40), st.integers(-(2**62), 2**62 - 1))


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.booleans(), KEYS), max_size=120))
def test_against_a_dictionary(operations):
    table, known = np.zeros(32, layout.SLOT), {}
    for number, (adds, key) in enumerate(operations, 1):
        place = paging.slot_of(table, key)
        assert table[place]["block"] == known.get(key, 0)
        if adds and len(known) < 24:
            known[key] = number
            table[place] = (key, number)
        elif key in known:
            del known[key]
            paging._drop(table, place)
    found = {int(row["key"]): int(row["block"]) for row in table if row["block"]}
    assert found == known
    for key, block in known.items():
        assert table[paging.slot_of(table, key)]["block"] == block
