"""Which tile a program computes, shared by every matrix product."""

import triton
import triton.language as tl


@triton.jit
def grouped_tile(program, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Return (tile row, tile column): GROUP_M tile rows at a time, so that the L2 holds their A.

    Programs that run together then share rows of A and columns of B.
    """
    per_group = GROUP_M * tiles_n
    group = program // per_group
    first = group * GROUP_M
    height = tl.minimum(tiles_m - first, GROUP_M)
    within = program % per_group
    return first + within % height, within // height
