"""How much of two objectives a front dominates."""

from twin.search.objectives import OBJECTIVES


def losses(evaluations, objectives):
    """Both objectives of those that keep every limit, smaller is better."""
    signs = [1 if OBJECTIVES[name].direction == "minimize" else -1 for name in objectives]
    return [
        tuple(sign * e.objectives[name] for sign, name in zip(signs, objectives, strict=True))
        for e in evaluations
        if e.meets
    ]


def front(points):
    """Those that no other beats."""
    found, height = [], float("inf")
    for x, y in sorted(points):
        if y < height:
            found.append((x, y))
            height = y
    return found


def hypervolume(points, reference):
    """Area between points and a reference; what is no better than that has none."""
    area, height = 0.0, reference[1]
    for x, y in sorted(points):
        if x < reference[0] and y < height:
            area += (reference[0] - x) * (height - y)
            height = y
    return area


def relative_hypervolumes(runs):
    """Hypervolume of each run, as a share of the box that the front of all runs spans.

    The reference lies a tenth of that box behind its worst corner, so that ends of a front count.
    """
    best = front([point for points in runs.values() for point in points])
    low = [min(point[axis] for point in best) for axis in (0, 1)]
    high = [max(point[axis] for point in best) for axis in (0, 1)]
    reference = tuple(high[axis] + 0.1 * (high[axis] - low[axis]) for axis in (0, 1))
    box = (reference[0] - low[0]) * (reference[1] - low[1])
    return {name: hypervolume(points, reference) / box for name, points in runs.items()}
