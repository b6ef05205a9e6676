"""The probes' part of a plan."""

from collections.abc import Mapping
from typing import Any

from calibrate.measuring.item import Item

Queue = tuple[list[Item], float]
ALL = "probes"
"""Family that stands for every probe."""


def probe_items(
    probes: Mapping[str, Any], facts: Any, gpus: int, *, small: bool = False
) -> list[Queue]:
    """Return every probe's items, its points in its own order, with its seconds as weight.

    Args:
        probes: `kernels.probes.catalogue.PROBES`.
        facts: `kernels.device.DeviceFacts`.
        gpus: how many there are; probes between GPUs are left out of one.
        small: the probes' small shapes, which run anywhere.
    """
    queues: list[Queue] = []
    for name, probe in probes.items():
        shapes = probe.small if small else probe.sweep(facts)
        if not shapes or (probe.needs == "gpus" and gpus < 2):
            continue
        each_s = probe.box_s / len(shapes)
        items = [
            Item(
                family=name,
                table=name,
                shape=dict(shape),
                launches=name,
                l2=None,
                work_s=each_s,
                box_s=each_s,
                is_probe=True,
            )
            for shape in shapes
        ]
        queues.append((items, probe.box_s))
    return queues
