"""What an engine keeps of its memory budget besides weights and KV cache.

Four physical terms; their sizes, per engine version, are fitted and stand in `overhead.py`:

* non-torch memory (CUDA context growth, workspaces), a constant of the build;
* communicators and their buffers, once tensor parallelism is on;
* the peak of the profiling step, the larger of
  - the sampler: engines before the fused samplers sort `max_num_seqs` rows of logits over the
    whole vocabulary, so bytes ∝ vocabulary × max_num_seqs,
  - the forward pass: residual stream, gate and up projections and their product for
    `max_num_batched_tokens` tokens in bf16 (experts: those of all chosen experts), times a
    scale that is 1 unless a version was measured where this term leads;
* CUDA graphs, which vLLM subtracts since 0.21.0.
"""

from dataclasses import dataclass

from twin.errors import InputError
from twin.llm.arch import ModelArch
from twin.llm.engine_version import Version, parse_version
from twin.llm.overhead import OVERHEADS

# vLLM subtracts its estimate of CUDA-graph memory from this release on (its own log line:
# "CUDA graph memory profiling is enabled (default since v0.21.0)").
_GRAPHS_SUBTRACTED_SINCE: Version = (0, 21, 0)

# Kept back of the unknown: spread of overheads between builds that were measured, GiB.
UNSEEN_BUILD_GIB = 0.4


@dataclass(frozen=True, slots=True)
class OverheadParameters:
    """Fitted overhead of one engine version.

    Attributes:
        engine: vllm, sglang or trtllm.
        version: the version the rows ran.
        non_torch_bytes: constant of the build, any TP.
        tp_bytes: added when TP > 1.
        sampler_bytes_per_logit: × vocabulary × max_num_seqs.
        cuda_graph_bytes: subtracted for captured graphs.
        forward_scale: × `forward_bytes_per_token` × max_num_batched_tokens.
        num_seqs, num_batched_tokens: the settings of the fitted runs, taken when a query names
            none.
        rows: how many measured capacities it was fitted on.
        fitted: which of the terms above were free in that fit; the others are those of the
            best measured version of the same engine, or 0.
    """

    engine: str
    version: str
    non_torch_bytes: float
    tp_bytes: float = 0.0
    sampler_bytes_per_logit: float = 0.0
    cuda_graph_bytes: float = 0.0
    forward_scale: float = 1.0
    num_seqs: int = 256
    num_batched_tokens: int = 2048
    rows: int = 1
    fitted: tuple[str, ...] = ()

    @property
    def exactly_determined(self) -> bool:
        """Whether the fit had no row to spare, so that its own rows come out by construction."""
        return self.rows <= len(self.fitted)


@dataclass(frozen=True, slots=True)
class Overhead:
    """Overhead of one rank, bytes."""

    activation_peak_bytes: float
    non_torch_bytes: float
    cuda_graph_bytes: float

    @property
    def total_bytes(self) -> float:
        """All of it."""
        return self.activation_peak_bytes + self.non_torch_bytes + self.cuda_graph_bytes


@dataclass(frozen=True, slots=True)
class StepShape:
    """The largest step an engine allows, per rank of `tp`; None: as in the fitted runs."""

    tp: int = 1
    ep: int = 1
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    cuda_graphs: bool = True


def known_parameters() -> list[OverheadParameters]:
    """Return every fitted set, oldest version first within an engine."""
    return [OverheadParameters(**entry) for entry in OVERHEADS]


def parameters_of(
    engine: str, engine_version: str | None
) -> tuple[OverheadParameters, tuple[str, ...]]:
    """Return the parameters of an engine version and, if it is not among them, a note.

    An unknown version takes those of the nearest one; None takes those of the newest.

    Raises:
        InputError: no capacity of this engine was ever measured.
    """
    known = [entry for entry in known_parameters() if entry.engine == engine]
    if not known:
        engines = sorted({entry.engine for entry in known_parameters()})
        raise InputError(
            f"no memory overhead is known for engine {engine!r}",
            remedy="choose one of " + ", ".join(engines),
        )
    wanted = parse_version(engine_version)
    if wanted is None:
        chosen = max(known, key=lambda entry: parse_version(entry.version) or (0, 0, 0))
        return chosen, (_borrowed(chosen, "no engine version given"),)
    candidates = [
        entry
        for entry in known
        if _subtracts_graphs(parse_version(entry.version)) == _subtracts_graphs(wanted)
    ] or known
    chosen = min(candidates, key=lambda entry: _distance(parse_version(entry.version), wanted))
    if parse_version(chosen.version) == wanted:
        return chosen, ()
    return chosen, (_borrowed(chosen, f"{engine} {engine_version} was never measured"),)


def overhead_of(arch: ModelArch, parameters: OverheadParameters, shape: StepShape) -> Overhead:
    """Return the overhead of one rank serving `arch`."""
    # Not extrapolated beyond the measured batch: a public log of vLLM 0.10 with 1,024 sequences
    # leaves 1.8 GiB more than growth in proportion would.
    num_seqs = min(shape.max_num_seqs or parameters.num_seqs, parameters.num_seqs)
    num_tokens = shape.max_num_batched_tokens or parameters.num_batched_tokens
    sampler = parameters.sampler_bytes_per_logit * arch.vocab_size * num_seqs
    forward = parameters.forward_scale * forward_bytes_per_token(arch, shape.tp, shape.ep)
    forward *= num_tokens
    return Overhead(
        activation_peak_bytes=max(sampler, forward),
        non_torch_bytes=parameters.non_torch_bytes + (parameters.tp_bytes if shape.tp > 1 else 0.0),
        cuda_graph_bytes=parameters.cuda_graph_bytes if shape.cuda_graphs else 0.0,
    )


def forward_bytes_per_token(arch: ModelArch, tp: int = 1, ep: int = 1) -> float:
    """Return bytes of live activations per token at the widest point of a layer, bf16."""
    width = 0.0
    if arch.moe is None or arch.moe.num_moe_layers < arch.num_layers:
        width = (3 if arch.gated_mlp else 2) * arch.intermediate_size / tp
    if arch.moe is not None:
        # Fused MoE kernels keep one row a chosen expert: the wider of up-projection and output,
        # and the activated product.
        per_rank = arch.moe.expert_intermediate / (1 if ep > 1 else tp)
        chosen = arch.moe.experts_per_token * (
            max(2 * per_rank, float(arch.hidden_size)) + per_rank
        )
        width = max(width, chosen)
    return 2 * (arch.hidden_size + width)


def _subtracts_graphs(version: Version | None) -> bool:
    return version is not None and version >= _GRAPHS_SUBTRACTED_SINCE


def _distance(version: Version | None, wanted: Version) -> float:
    if version is None:
        return float("inf")
    return abs(_position(version) - _position(wanted))


def _position(version: Version) -> float:
    return version[0] * 1000 + version[1] + version[2] / 100


def _borrowed(chosen: OverheadParameters, why: str) -> str:
    fitted_on = "1 measured capacity" if chosen.rows == 1 else f"{chosen.rows} measured capacities"
    return (
        f"{why}: overhead taken from {chosen.engine} {chosen.version} "
        f"(fitted on {fitted_on}); expect ± {UNSEEN_BUILD_GIB} GiB a GPU"
    )
