"""The area that a front of two objectives dominates, and runs that give fronts."""

from twin.search.objectives import OBJECTIVES


def losses(evaluations, objectives):
    """Both objectives of those that keep every limit, smaller is better."""
    signs = [1 if OBJECTIVES[name].direction == "minimize" else -1 for name in objectives]
    return [
        tuple(sign * e.objectives[name] for sign, name in zip(signs, objectives, strict=True))
        for e in evaluations
        if e.meets
    ]


def hypervolume(points, reference):
    """Area between points and a reference that is no better than any of them."""
    area, height = 0.0, reference[1]
    for x, y in sorted(points):
        if x < reference[0] and y < height:
            area += (reference[0] - x) * (height - y)
            height = y
    return area
