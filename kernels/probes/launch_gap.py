"""Launches that follow each other: the least time between kernels.

Axes: `launches` in a row; `bytes` that each adds one to (read and written; 0: a single word);
`graph` 0: in a stream that the host has filled beforehand, 1: in one CUDA graph, 2: in a stream as
fast as the host launches PyTorch operations, which is the floor of eager execution.
"""

from collections.abc import Callable

import torch

from kernels.case import Shape
from kernels.checks import check
from kernels.device import DeviceFacts
from kernels.probes.events import event_seconds
from kernels.probes.probe import Probe, ProbeError, crossed, each_of, sizes_of
from kernels.timing import L2State, Timer, Timing

HELD, GRAPH, HOST = 0, 1, 2
_MOST_HELD = 500
"""A stream takes about a thousand launches before the host has to wait for it."""
_HOST_S = 20e-6
"""More than a host takes for a launch."""


def _measure(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    launches, graph, num_bytes = sizes_of(shape, LAUNCH_GAP.axes, launches=1)
    check(graph <= HOST, f"graph is {graph}; 0, 1 or 2 is needed")
    check(
        graph != HELD or launches <= _MOST_HELD,
        f"launches is {launches}; a held stream takes at most {_MOST_HELD}",
    )
    counter = torch.zeros(max(1, num_bytes // 4), device=device)

    def launch() -> None:
        for _ in range(launches):
            counter.add_(1.0)

    if device.type == "cuda":
        seconds = event_seconds(
            device,
            _graph_of(launch, counter) if graph == GRAPH else launch,
            hold_s=launches * _HOST_S + 1e-4 if graph == HELD else 0.0,
        )
        timing = Timing(seconds, L2State.WARM)
    else:
        timing = timer.time(launch, l2=L2State.WARM)
    counted = float(counter[0])
    if not counted or counted % launches or not bool((counter == counted).all()):
        raise ProbeError(f"launch_gap: {counted:g} launches were counted, in rows of {launches}")
    return each_of(timing, launches)


def _graph_of(launch: Callable[[], None], counter: torch.Tensor) -> Callable[[], object]:
    launch()
    torch.cuda.synchronize(counter.device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    return graph.replay


def _sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    main = crossed([{"launches": 500}], graph=[HELD, GRAPH, HOST], bytes=[65536, 0])
    more = crossed([{"launches": n} for n in (1, 10, 100)], graph=[HELD, GRAPH, HOST], bytes=[0])
    return (*main, *more, {"launches": 2000, "graph": GRAPH, "bytes": 65536})


LAUNCH_GAP = Probe(
    name="launch_gap",
    axes=("launches", "graph", "bytes"),
    sweep=_sweep,
    small=crossed([{"launches": 3}], graph=[HELD, GRAPH, HOST], bytes=[0, 65536]),
    measure=_measure,
    what="one launch of so many in a row",
    box_s=15.0,
)
