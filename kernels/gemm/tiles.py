"""What a program of a matrix product does: which tile is its, and the sum over k."""

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


@triton.jit
def tile_product(
    a,
    b,
    row,
    column,
    start,
    m,
    n,
    k,
    lda,
    stride_bk,
    stride_bn,
    steps,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    EVEN_K: tl.constexpr,
    B_BY_ROWS: tl.constexpr,
    IMPRECISE: tl.constexpr,
):
    """Return the fp32 tile at (row, column), over `steps` blocks of k from `start`.

    row, column and start are 64-bit: a matrix may have more than 2^31 elements; a tile has not.
    """
    rows, columns, depth = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    last_m = tl.minimum(m - row - 1, BLOCK_M).to(tl.int32)
    last_n = tl.minimum(n - column - 1, BLOCK_N).to(tl.int32)
    in_n = (columns < n - column)[None, :]
    # Beyond the edge the last row is read again: no predicate in the loop, and nothing stored
    # changes. Along contiguous columns that would break up wide loads, so there it is a mask.
    a_at = a + row * lda + start + tl.minimum(rows, last_m)[:, None] * lda + depth[None, :]
    b_at = b + start * stride_bk + column * stride_bn + depth[:, None] * stride_bk
    if B_BY_ROWS:
        b_at += columns[None, :] * stride_bn
    else:
        b_at += tl.minimum(columns, last_n)[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(steps):
        in_k = depth < k - start - step * BLOCK_K
        left = tl.load(a_at) if EVEN_K else tl.load(a_at, mask=in_k[None, :], other=0.0)
        if B_BY_ROWS:
            right_mask = in_n if EVEN_K else in_n & in_k[:, None]
            right = tl.load(b_at, mask=right_mask, other=0.0)
        elif EVEN_K:
            right = tl.load(b_at)
        else:
            right = tl.load(b_at, mask=in_k[:, None], other=0.0)
        total = tl.dot(left, right, total, input_precision="ieee", max_num_imprecise_acc=IMPRECISE)
        a_at += BLOCK_K
        b_at += BLOCK_K * stride_bk
    return total


@triton.jit
def store_tile(
    c, total, row, column, split, m, n, ldc, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Store a tile of C. Each split has its own [m, n] of the workspace; unsplit, c is C."""
    rows, columns = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    inside = (rows < m - row)[:, None] & (columns < n - column)[None, :]
    at = c + split * m * ldc + row * ldc + column + rows[:, None] * ldc + columns[None, :]
    tl.store(at, total.to(c.dtype.element_ty), mask=inside)
