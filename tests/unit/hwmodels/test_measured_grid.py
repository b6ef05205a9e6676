import math

import numpy as np
import pytest

from hwmodels.measured.grid import ResidualGrid
from hwmodels.ops import Source


def grid(ratio: object, *, without: tuple[tuple[float, ...], ...] = ()) -> ResidualGrid:
    """A 4×4 grid over powers of four; physics is x·y, measured is that times exp(ratio)."""
    axis = [1.0, 4.0, 16.0, 64.0]
    points = [(x, y) for x in axis for y in axis if (x, y) not in without]
    x, y = (np.array([p[i] for p in points]) for i in (0, 1))
    seconds = np.array([a * b * math.exp(ratio(a, b)) for a, b in points])  # type: ignore[operator]
    return ResidualGrid([x, y], seconds, lambda a, b: a * b)


def log4(x: float) -> float:
    return math.log(x) / math.log(4)


def test_a_measured_point_comes_back() -> None:
    found, source = grid(lambda x, y: 0.1 * log4(x) - 0.2 * log4(y)).at(16, 4)
    assert found == pytest.approx(0.0)
    assert source is Source.TABLE


def test_between_points_it_is_linear_in_logarithms() -> None:
    found, source = grid(lambda x, y: 0.1 * log4(x) + 0.3 * log4(y)).at(8, 32)
    assert found == pytest.approx(0.1 * 1.5 + 0.3 * 2.5)
    assert source is Source.INTERPOLATED


@pytest.mark.parametrize("far", [65, 1e6])
def test_outside_the_edge_holds(far: float) -> None:
    found, source = grid(lambda x, y: 0.1 * log4(x)).at(far, 4)
    assert found == pytest.approx(0.3)
    assert source is Source.EXTRAPOLATED


def test_a_gap_is_filled_from_its_neighbours() -> None:
    found, source = grid(lambda x, y: 0.1 * log4(x) + 0.3 * log4(y), without=((4, 16),)).at(4, 16)
    assert found == pytest.approx(0.1 + 0.6)
    assert source is Source.INTERPOLATED


def test_a_missing_corner_takes_the_nearest_edge_and_says_so() -> None:
    missing = ((64.0, 64.0), (64.0, 16.0), (16.0, 64.0))
    found, source = grid(lambda x, y: 0.1 * log4(x) + 0.1 * log4(y), without=missing).at(64, 64)
    assert source is Source.EXTRAPOLATED
    # (64, 4) and (4, 64) are the nearest measured points on the two lines.
    assert found == pytest.approx(0.4)


def test_one_axis_of_three_may_be_off() -> None:
    axis = np.array([1.0, 2.0, 4.0])
    points = np.array(np.meshgrid(axis, axis, axis, indexing="ij")).reshape(3, -1).T
    # A jump along the first axis, as where a kernel switches tiles.
    seconds = np.where(points[:, 0] > 2, 8.0, 1.0)
    kept = ~np.all(points == [2, 2, 2], axis=1)
    columns = [points[kept, i] for i in range(3)]
    cube = ResidualGrid(columns, seconds[kept], lambda *_: 1.0)
    found, _ = cube.at(2, 2, 2)
    assert abs(found) < 0.5 * math.log(8) / 2


def test_physics_is_asked_only_around_the_point() -> None:
    asked = []

    def physics(x: float) -> float:
        asked.append(x)
        return x

    values = np.array([float(2**i) for i in range(20)])
    line = ResidualGrid([values], values * 2, physics)
    assert line.at(3.0)[0] == pytest.approx(math.log(2))
    assert sorted(asked) == [2.0, 4.0]
    line.at(3.5)
    assert len(asked) == 2
