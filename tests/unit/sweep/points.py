"""Points of sweeps made by hand."""

from twin.forecast_error import forecast_error
from twin.report.slo import Slo
from twin.sweep.judged import Judged
from twin.sweep.point import LoadPoint
from twin.sweep.sweep import LoadSweep
from twin.sweep.waits import REASONS

CALM = {
    "requests": 100,
    "lost": 0,
    "requests_per_s": 1.0,
    "output_tokens_per_s": 100.0,
    "ttft_p50_s": 0.1,
    "ttft_p99_s": 0.2,
    "itl_p50_s": 0.01,
    "itl_p99_s": 0.02,
    "slo_ttft_s": 0.2,
    "slo_tpot_s": None,
    "slo_attainment": 1.0,
    "slo": Judged(True, True, True),
    "kv_peak": 0.5,
    "kv_mean": 0.2,
    "preemptions": 0,
    "running_max": 10.0,
    "waiting_max": 0.0,
    "waiting_mean": 0.0,
    "seats": 256,
    "step_tokens": 8192,
    "queue_grows": False,
    "gpu_busy_share": 0.9,
    "bound": {"compute": 0.3, "hbm": 0.7, "link": 0.0, "launch": 0.0},
    "waits": dict.fromkeys(REASONS, 0.0),
}
MISSED = {"slo": Judged(False, False, False), "slo_attainment": 0.9, "slo_ttft_s": 1.4}


def point(offered, goodput=None, *, waits=None, **changes):
    """Return a point that follows its load, unless told otherwise."""
    told = {**CALM, **changes, "waits": {**CALM["waits"], **(waits or {})}}
    good = offered if goodput is None else goodput
    return LoadPoint(factor=offered / 10, offered=offered, goodput_per_s=good, **told)


def sweep(*points, slo_s=1.0, unit="req/s"):
    """Return a sweep of these points, dense network."""
    slo = Slo(ttft_s=slo_s)
    return LoadSweep("made", unit, slo, forecast_error(experts=False), points)
