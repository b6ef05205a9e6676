"""Tile configurations of the matrix products, and which one a shape should take."""

from dataclasses import asdict, dataclass, replace

from kernels.checks import check

SHARED_BYTES = 227 * 1024
"""Most shared memory of a block on compute capability 9.0 (CUDA C++ programming guide)."""


@dataclass(frozen=True, slots=True)
class GemmConfig:
    """How one product is cut.

    Attributes:
        block_m: rows of a tile of C.
        block_n: columns of a tile of C.
        block_k: elements of k that a program takes in one step.
        group_m: tile rows that run together, for the L2.
        warps: of a program.
        stages: steps of k in flight.
        split_k: programs that share one tile, each with a part of k.
    """

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    warps: int
    stages: int
    split_k: int = 1

    def shared_bytes(self, element_bytes: int) -> int:
        """Return the shared memory that the stages in flight take of A and B."""
        step = (self.block_m + self.block_n) * self.block_k * element_bytes
        return step * self.stages

    def tiles(self, m: int, n: int) -> int:
        """Return the tiles of C."""
        return -(-m // self.block_m) * -(-n // self.block_n)

    def as_dict(self) -> dict[str, int]:
        """Return the fields by name."""
        return asdict(self)


HALF_CONFIGS: tuple[GemmConfig, ...] = (
    GemmConfig(16, 64, 128, 8, 4, 4),
    GemmConfig(16, 128, 128, 8, 4, 4),
    GemmConfig(32, 64, 64, 8, 4, 4),
    GemmConfig(32, 128, 64, 8, 4, 4),
    GemmConfig(64, 64, 64, 8, 4, 4),
    GemmConfig(64, 128, 64, 8, 4, 4),
    GemmConfig(64, 256, 64, 8, 8, 3),
    GemmConfig(128, 64, 64, 8, 4, 4),
    GemmConfig(128, 128, 32, 8, 4, 4),
    GemmConfig(128, 128, 64, 8, 8, 3),
    GemmConfig(128, 256, 32, 8, 8, 4),
    GemmConfig(128, 256, 64, 8, 8, 3),
    GemmConfig(128, 256, 64, 8, 8, 4),
)
"""For fp16 and bf16, on the tensor cores."""

SINGLE_CONFIGS: tuple[GemmConfig, ...] = (
    GemmConfig(16, 64, 32, 8, 4, 3),
    GemmConfig(32, 64, 32, 8, 4, 2),
    GemmConfig(64, 64, 16, 8, 4, 3),
    GemmConfig(64, 128, 16, 8, 8, 3),
)
"""For fp32: exact products take no tensor core, and their operands twice the registers."""

FP8_CONFIGS: tuple[GemmConfig, ...] = (
    GemmConfig(16, 64, 256, 8, 4, 4),
    GemmConfig(16, 128, 128, 8, 4, 4),
    GemmConfig(64, 64, 128, 8, 4, 4),
    GemmConfig(64, 128, 128, 8, 4, 4),
    GemmConfig(128, 128, 128, 8, 8, 3),
    GemmConfig(64, 256, 128, 8, 8, 3),
)
"""For fp8 e4m3, on the tensor cores of compute capability 8.9 and later. No 128x256: sums of two
levels take twice the registers."""

UNALIGNED_CONFIGS: tuple[GemmConfig, ...] = (
    GemmConfig(16, 32, 64, 8, 4, 3),
    GemmConfig(16, 64, 64, 8, 4, 3),
    GemmConfig(32, 64, 32, 8, 4, 3),
    GemmConfig(64, 128, 32, 8, 8, 3),
    GemmConfig(128, 64, 32, 8, 8, 3),
    GemmConfig(128, 128, 32, 8, 8, 3),
)
"""For rows that don't begin at multiples of 16 elements: each element is then loaded by itself and
wants a register for its address, of which larger tiles have too few."""

SPLITS = (1, 2, 4, 8)
_MIN_STEPS = 4
"""Steps of k that a split must keep, or filling the pipeline costs more than it hides."""

# Clock cycles of an H100 (physics: form C of GEMM times, at 1.755 GHz and 132 multiprocessors).
# They rank configurations; they forecast nothing.
_FLOPS_PER_CYCLE = {1: 7_340.0, 2: 3_670.0, 4: 256.0}
_L2_BYTES_PER_CYCLE = 79.0
_HBM_BYTES_PER_CYCLE = 1_650.0
_SATURATION = 0.059
_WAVE_CYCLES = 1_230.0
_SPLIT_CYCLES = 3_670.0


def configs_for(element_bytes: int, *, aligned: bool = True) -> tuple[GemmConfig, ...]:
    """Return the table for elements of this size.

    Args:
        element_bytes: 1 (fp8), 2 or 4, of A and B.
        aligned: every row of A and B begins at a multiple of 16 elements.
    """
    if not aligned:
        return UNALIGNED_CONFIGS
    return {1: FP8_CONFIGS, 2: HALF_CONFIGS, 4: SINGLE_CONFIGS}[element_bytes]


def candidate_configs(
    m: int,
    n: int,
    k: int,
    *,
    table: tuple[GemmConfig, ...] = HALF_CONFIGS,
    element_bytes: int = 2,
    shared_bytes: int = SHARED_BYTES,
) -> tuple[GemmConfig, ...]:
    """Return the configurations worth timing for C[m, n] = A[m, k] · B[k, n], splits included.

    Left out: tiles twice as high or wide as C or more, splits that leave a program fewer than
    four steps, and what the shared memory of a block cannot hold.

    Args:
        table: those to choose from (`configs_for`).
        element_bytes: of A and B.
        shared_bytes: most shared memory of a block.
    """
    check(min(m, n, k) >= 1, f"m, n, k are {m}, {n}, {k}; each must be at least 1")
    fits = [c for c in table if c.shared_bytes(element_bytes) <= shared_bytes]
    check(bool(fits), f"no tile fits {shared_bytes} bytes of shared memory")
    most_m = 2 * max(m, min(c.block_m for c in fits))
    most_n = 2 * max(n, min(c.block_n for c in fits))
    sized = [c for c in fits if c.block_m < most_m and c.block_n < most_n]
    return tuple(
        replace(config, split_k=split)
        for config in sized or fits[:1]
        for split in SPLITS
        if split == 1 or k >= split * _MIN_STEPS * config.block_k
    )


def config_for(
    m: int,
    n: int,
    k: int,
    num_sms: int,
    *,
    table: tuple[GemmConfig, ...] = HALF_CONFIGS,
    element_bytes: int = 2,
    shared_bytes: int = SHARED_BYTES,
) -> GemmConfig:
    """Return the configuration to take where none has been timed: the fastest by a plain model.

    Args:
        num_sms: multiprocessors of the GPU.
        table: those to choose from (`configs_for`).
        element_bytes: of A and B.
        shared_bytes: most shared memory of a block.
    """
    check(num_sms >= 1, f"num_sms is {num_sms}; it must be at least 1")
    candidates = candidate_configs(
        m, n, k, table=table, element_bytes=element_bytes, shared_bytes=shared_bytes
    )
    # Of equals the one with most of k in flight: fewer, longer steps.
    return min(
        candidates,
        key=lambda c: (_cycles(c, m, n, k, num_sms, element_bytes), -c.block_k * c.stages),
    )


def _cycles(c: GemmConfig, m: int, n: int, k: int, num_sms: int, element_bytes: int) -> float:
    """Rank a configuration: the slowest of tensor cores, HBM and L2, and waves and splits."""
    programs = c.tiles(m, n) * c.split_k
    waves = -(-programs // num_sms)
    steps = -(-k // (c.split_k * c.block_k)) * c.block_k
    active = min(programs, num_sms)
    share = active / num_sms
    compute = waves * 2 * c.block_m * c.block_n * steps / _FLOPS_PER_CYCLE[element_bytes]
    operands = waves * element_bytes * steps * (c.block_m + c.block_n) / _L2_BYTES_PER_CYCLE
    bandwidth = _HBM_BYTES_PER_CYCLE * share / (share + _SATURATION) * (1 + _SATURATION)
    memory = ((m * k + k * n) * element_bytes + 2 * m * n) / bandwidth
    split = _SPLIT_CYCLES + 8 * m * n * c.split_k / _HBM_BYTES_PER_CYCLE if c.split_k > 1 else 0.0
    return max(compute, operands, memory) + _WAVE_CYCLES * waves + split


def steps_of_k(config: GemmConfig, k: int) -> int:
    """Return the steps that each of the programs sharing a tile takes."""
    return -(-k // (config.block_k * config.split_k))
