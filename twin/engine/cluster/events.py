"""What happened to the replicas of a cluster, and when."""

from array import array

import numpy as np

from twin.engine.result import (
    CRASHED,
    DRAINING,
    GONE,
    READY,
    STARTING,
    ClusterEvents,
)

__all__ = ["CRASHED", "DRAINING", "GONE", "READY", "STARTING", "EventLog"]


class EventLog:
    """Changes in the lives of replicas, in order of time."""

    def __init__(self) -> None:
        self._time_s = array("d")
        self._replica, self._what = array("q"), array("q")

    def add(self, time_s: float, replica: int, what: int) -> None:
        """Note that `what` (an index into `CLUSTER_EVENTS`) happened to a replica."""
        self._time_s.append(time_s)
        self._replica.append(replica)
        self._what.append(what)

    def table(self) -> ClusterEvents:
        """Return the arrays."""
        return ClusterEvents(
            np.array(self._time_s, dtype=np.float64),
            np.array(self._replica, dtype=np.int64),
            np.array(self._what, dtype=np.int64),
        )
