"""Every probe of one GPU, one line each."""

from kernels.probes.chase import CHASE
from kernels.probes.decode import DECODE_L2, DECODE_ORDER
from kernels.probes.first_shape import FIRST_SHAPE
from kernels.probes.gather import GATHER
from kernels.probes.launch_gap import LAUNCH_GAP
from kernels.probes.lifetime_race import LIFETIME_RACE
from kernels.probes.offset_copy import OFFSET_COPY
from kernels.probes.probe import Probe
from kernels.probes.products import LDA, TILE_EDGE
from kernels.probes.shared_memory import SHARED_MEMORY
from kernels.probes.stream import L2_SWEEP, STREAM
from kernels.probes.transfer import TRANSFER

PROBES: dict[str, Probe] = {
    probe.name: probe
    for probe in (
        STREAM,
        L2_SWEEP,
        CHASE,
        GATHER,
        OFFSET_COPY,
        LDA,
        TILE_EDGE,
        SHARED_MEMORY,
        DECODE_ORDER,
        DECODE_L2,
        LAUNCH_GAP,
        TRANSFER,
        FIRST_SHAPE,
        LIFETIME_RACE,
    )
}
"""Every probe by name. Collectives between GPUs and storage run by themselves."""
