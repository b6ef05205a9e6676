from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from twin.workload.spec import WorkloadSpec

ADAPTER: TypeAdapter[WorkloadSpec] = TypeAdapter(WorkloadSpec)

POISSON = {"kind": "poisson", "rate": 5}
LENGTHS = {"prompt_tokens": 100, "output_tokens": 10}

GOOD: dict[str, dict[str, Any]] = {
    "trace": {"path": "t.csv"},
    "synthetic": {"arrivals": POISSON, "num_requests": 5, **LENGTHS},
    "closed_loop": {"concurrency": 4, "num_requests": 10, **LENGTHS},
    "sessions": {
        "arrivals": POISSON,
        "num_sessions": 5,
        "turns": 3,
        "message_tokens": 20,
        "answer_tokens": 30,
        "next_turn": {"kind": "after_answer", "think_time_s": 3},
    },
    "shared_prefix": {
        "behaviour": "grow",
        "num_groups": 3,
        "prompts_per_group": 4,
        "system_prompt_tokens": 100,
        "question_tokens": 10,
        "output_tokens": 10,
        "stages": [{"rate": 5, "duration_s": 10}],
    },
}


@pytest.mark.parametrize("kind", GOOD)
def test_round_trip(kind: str) -> None:
    spec = ADAPTER.validate_python({"kind": kind, **GOOD[kind]})
    assert ADAPTER.validate_python(spec.model_dump()) == spec
    assert ADAPTER.validate_json(spec.model_dump_json()) == spec


def test_the_schema_lists_every_kind() -> None:
    assert set(ADAPTER.json_schema()["discriminator"]["mapping"]) == set(GOOD)


@pytest.mark.parametrize(
    ("kind", "change", "problem"),
    [
        ("trace", {"format": "mooncake"}, "unknown trace format 'mooncake'; did you mean"),
        ("trace", {"window_s": [5, 5]}, "is empty; give start < end"),
        ("trace", {"window_s": [-1, 5]}, "greater than or equal to 0"),
        ("trace", {"sample": 0}, "greater than 0"),
        ("trace", {"sample": 1.1}, "less than or equal to 1"),
        ("trace", {"rate_scale": float("inf")}, "finite"),
        ("trace", {"rate_scale": 2, "arrivals": POISSON}, "drop one"),
        ("trace", {"max_requests": 0}, "greater than 0"),
        ("trace", {"rate": 3}, "Extra inputs"),
        ("synthetic", {"num_requests": None}, "set how many arrive, duration_s, or both"),
        ("synthetic", {"num_requests": 10**12}, "less than or equal to 10000000"),
        ("synthetic", {"arrivals": {"kind": "poisson", "rate": 1e300}}, "less than or equal to"),
        ("synthetic", {"arrivals": {"kind": "poisson", "rate": 0}}, "greater than"),
        ("synthetic", {"arrivals": {"kind": "gamma", "rate": 1, "burstiness": 0}}, "greater than"),
        (
            "synthetic",
            {"arrivals": {"kind": "poisson", "rate": 1e6}, "num_requests": None, "duration_s": 1e8},
            "is 1e\\+14 arrivals",
        ),
        ("synthetic", {"arrivals": {"kind": "stages", "stages": []}}, "at least 1 item"),
        (
            "synthetic",
            {"arrivals": {"kind": "stages", "stages": [{"rate": 0, "duration_s": 5}]}},
            "less than one arrival",
        ),
        (
            "synthetic",
            {"arrivals": {"kind": "stages", "stages": [{"rate": 1e6, "duration_s": 1e6}]}},
            "arrivals; at most",
        ),
        (
            "synthetic",
            {
                "arrivals": {"kind": "stages", "stages": [{"rate": 1, "duration_s": 5}]},
                "duration_s": 5,
            },
            "stages have their own duration_s",
        ),
        ("synthetic", {"priorities": {}}, "at least 1 item"),
        ("synthetic", {"priorities": {1: -1}}, "greater than 0"),
        ("synthetic", {"prefixes": {"num_prefixes": 0, "prefix_tokens": 5}}, "greater than 0"),
        (
            "synthetic",
            {"prompt_tokens": {"kind": "empirical", "path": "t", "format": "x"}},
            "unknown trace format 'x'",
        ),
        ("closed_loop", {"concurrency": 0}, "greater than 0"),
        ("closed_loop", {"warmup_requests": 10**7}, "requests with warm-up; at most"),
        ("closed_loop", {"think_time_s": float("nan")}, "finite"),
        ("closed_loop", {"think_time_s": -1}, "greater than or equal to 0"),
        ("sessions", {"turns": 1001}, "1001 turns a session; at most 1000"),
        ("sessions", {"turns": {"kind": "uniform", "low": 1, "high": 1001}}, "at most 1000"),
        ("sessions", {"num_sessions": 10**7}, "requests in all"),
        ("sessions", {"num_sessions": None}, "set how many arrive"),
        ("sessions", {"next_turn": {"kind": "never"}}, "does not match any"),
        ("shared_prefix", {"stages": [{"rate": 0.01, "duration_s": 10}]}, "brings no request"),
        ("shared_prefix", {"stages": [{"rate": 1e6, "duration_s": 100}]}, "requests; at most"),
        (
            "shared_prefix",
            {"num_groups": 10**6, "prompts_per_group": 10**6},
            "prompts; at most",
        ),
        (
            "shared_prefix",
            {"arrivals": "poisson_seconds", "stages": [{"rate": 1e-6, "duration_s": 1e7}]},
            "too long for poisson_seconds",
        ),
        ("shared_prefix", {"behaviour": "shrink"}, "'cycle' or 'grow'"),
        ("shared_prefix", {"too_long": "ignore"}, "'reject' or 'error'"),
    ],
)
def test_bad_specs(kind: str, change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ADAPTER.validate_python({"kind": kind, **GOOD[kind], **change})


def test_unknown_kind() -> None:
    with pytest.raises(ValidationError, match="'closed_loop'"):
        ADAPTER.validate_python({"kind": "burst"})
