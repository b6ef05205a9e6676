from dataclasses import fields

import numpy as np

from twin.request import Request, SegmentContent
from twin.workload.columns import length_columns, make_requests


def test_requests_are_as_the_constructor_makes_them() -> None:
    arrival_s = np.array([0.5, 1.5])
    prompt, output = np.array([5, 60]), np.array([7, 8])
    plain = make_requests(arrival_s, length_columns(prompt, output, "length", 50))
    assert plain == [Request(0, 0.5, 5, 7), Request(1, 1.5, 60, 8)]
    assert [hash(request) for request in plain] == [hash(Request(0, 0.5, 5, 7)), hash(plain[1])]
    contents = [SegmentContent((i,), (9,)) for i in range(2)]
    full = make_requests(
        arrival_s,
        length_columns(prompt, output, "stop", 50),
        contents=contents,
        priority=np.array([3, 4]),
        names=["a", "b"],
        session=np.array([1, 2]),
        turn=np.array([8, 9]),
        tenant=["x", "y"],
    )
    assert full == [
        Request(0, 0.5, 5, 45, 7, contents[0], 3, "a", 1, 8, "x"),
        Request(1, 1.5, 60, 1, 8, contents[1], 4, "b", 2, 9, "y"),
    ]
    assert all(type(getattr(full[0], f.name)) is not np.int64 for f in fields(Request))
