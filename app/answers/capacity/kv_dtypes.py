"""KV dtypes side by side: bytes, blocks, requests, and what rounding loses."""

from dataclasses import dataclass

from app.answers.capacity.deployment import Deployment, deployments
from app.answers.capacity.lengths import lengths_of
from app.answers.setup import Setup
from twin.errors import InputError
from twin.llm.quality import KV_LOSS, NOTHING_PUBLISHED
from twin.report.numbers import MISSING, change, count, percent

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class KvDtype:
    """One dtype.

    Attributes:
        name: a `kv_cache_dtype`.
        own: it is the scenario's.
        token_bytes: KV of a token on one GPU.
        blocks: that requests can hold.
        ratio: blocks over those of `auto`; None: `auto` leaves none.
        at_p99: requests at once at the scenario's P99 context; None: lengths are not known.
        error: relative error of rounding alone, at least.
        evidence: what was published of its effect on answers, a sentence each.
    """

    name: str
    own: bool
    token_bytes: int
    blocks: int
    ratio: float | None
    at_p99: int | None
    error: float
    evidence: tuple[str, ...]


def kv_dtypes(setup: Setup, pool: str = "") -> tuple[KvDtype, ...]:
    """Return the KV dtypes that a setup can have, `auto` (16 bits) first.

    Args:
        setup: what is asked.
        pool: the kind of engine that is meant; unknown: the first.

    Raises:
        InputError: its parts do not go together.
    """
    found, inputs = deployments(setup)
    one = found.get(pool) or next(iter(found.values()))
    try:
        lengths = lengths_of(inputs.workload, one.file.seed, one.policy().max_model_len)
        context: int | None = lengths.percentile(99)
    except InputError:
        context = None
    plain = one.held(one.capacity(kv_cache_dtype=AUTO))
    return tuple(_of(one, name, plain, context) for name in one.kv_dtypes())


def _of(one: Deployment, name: str, plain: int, context: int | None) -> KvDtype:
    found = one.capacity(kv_cache_dtype=name)
    blocks, loss = one.held(found), KV_LOSS[name]
    return KvDtype(
        name=name,
        own=name == one.file.policy.kv_cache_dtype,
        token_bytes=found.kv_bytes_per_token_per_gpu,
        blocks=blocks,
        ratio=blocks / plain if plain else None,
        at_p99=None if context is None else blocks // -(-context // found.block_size),
        error=loss.error,
        evidence=tuple(f"{each.text} ({each.source})" for each in loss.evidence),
    )


def dtype_table(dtypes: tuple[KvDtype, ...]) -> dict[str, list[str]]:
    """Return the columns of the table on the page, by heading."""
    return {
        "KV dtype": [f"{d.name} (now)" if d.own else d.name for d in dtypes],
        "Bytes a token and GPU": [count(d.token_bytes) for d in dtypes],
        "Blocks": [count(d.blocks) for d in dtypes],
        "Blocks vs auto": [
            MISSING if d.ratio is None else change(100 * (d.ratio - 1)) for d in dtypes
        ],
        "Requests at P99 context": [count(d.at_p99) for d in dtypes],
        "Rounding error, at least": [percent(d.error) if d.error else "none" for d in dtypes],
    }


def quality_words(dtype: KvDtype) -> str:
    """Return what is known of a dtype's effect on answers, as Markdown; empty: it has none."""
    if not dtype.error:
        return ""
    known = "".join(f"\n- {each}" for each in dtype.evidence or (NOTHING_PUBLISHED,))
    return (
        "What it does to answers is not simulated. Rounding alone is off by at least "
        f"{percent(dtype.error)}; published:\n{known}"
    )
