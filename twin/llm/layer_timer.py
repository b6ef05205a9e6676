"""Step times from whole layers that were measured on the GPU, instead of single kernels.

A layer profile holds one decoder layer of one network on one rank of one GPU: its dense parts by
tokens, attention by the shape of the batch, experts by tokens and how many of them wake, output
head and sampler by sequences. A step is that layer times their number, the parts that run once,
and the collectives between ranks.

Nothing is added for gaps between kernels inside a CUDA graph and nothing taken off for kernels
that compilation fuses: measured kernel by kernel the profile carries about as much as a captured
graph costs (decode-only steps of two replayed runs agree within 1-3 %, see `docs/replays.md`). A
step with prefill is no full graph; its kernels wait for one another as in a stream.
"""

import numpy as np
from numpy.typing import NDArray

from hwmodels.collectives import collective_cost
from hwmodels.efficiency import EFFICIENCIES
from hwmodels.gpus import GPUS
from hwmodels.moe import expected_active_experts
from hwmodels.ops import Bound, Collective, Source
from hwmodels.profile import HardwareProfile
from twin.errors import InputError
from twin.llm.arch import ModelArch, MoeArch
from twin.llm.cuda_graphs import padded
from twin.llm.layer_parts import (
    BF16_BYTES,
    attention_grid,
    cold_floors,
    dense_lines,
    expert_table,
    head_lines,
    skew_fit,
)
from twin.llm.layer_run import LayerRun
from twin.llm.layer_sum import LayerSum
from twin.llm.op_sum import BOUNDS, SOURCES
from twin.llm.stages import WHOLE, Ends
from twin.llm.step_time import StepTime
from twin.step import BatchShape

Floats = NDArray[np.float64]

_VOCAB_PAD = 64
# Times a name of the profile runs in a layer: norms before attention and before the MLP.
_PER_LAYER = {
    "layernorm": 2,
    "qkv_proj": 1,
    "qk_norm": 1,
    "rotary_emb": 1,
    "o_proj": 1,
    "gate_up_proj": 1,
    "act_fn": 1,
    "down_proj": 1,
}
_FIRST, _LAST = ("embedding",), ("final_layernorm",)
_HEAD = ("lm_head", "sampler")
_SMALLEST_CHUNK = 16  # tokens; the least of any profile

# Two norms, four products, rotary, KV write, attention and its reduction, activation.
_KERNELS_PER_LAYER = 11

_COMPUTE, _HBM, _LINK, _LAUNCH = (
    BOUNDS.index(b) for b in (Bound.COMPUTE, Bound.HBM, Bound.LINK, Bound.LAUNCH)
)
_INTERPOLATED, _PHYSICS = SOURCES.index(Source.INTERPOLATED), SOURCES.index(Source.PHYSICS)


class LayerTimer:
    """Times passes of one tensor-parallel rank, with CUDA graphs (`layer_profiles.applies`).

    Args:
        profile: of kind `layers`, for this network and `tp`.
        arch: the network.
        tp: ranks that share each layer.
        capture_sizes: batch sizes captured as CUDA graphs; the dense parts see the padded size.
        ends: which ends of the network `arch` has: a pipeline stage in between has neither.

    Raises:
        InputError: the profile is of another network or another `tp`, or lacks its experts.
    """

    def __init__(
        self,
        profile: HardwareProfile,
        arch: ModelArch,
        tp: int = 1,
        capture_sizes: tuple[int, ...] = (),
        ends: Ends = WHOLE,
    ) -> None:
        _check(profile, arch, tp)
        self.arch, self.tp, self.gpu = arch, tp, GPUS[profile.gpu]
        self.capture_sizes = capture_sizes
        self._dense, self._heads = dense_lines(profile), head_lines(profile)
        self._attention = attention_grid(profile, arch, self.gpu, tp)
        self._skew = skew_fit(profile)
        self._experts = expert_table(profile, arch, self.gpu)
        # From so many tokens on, products take longer than their weights.
        self._ridge_tokens = self.gpu.flops_per_s["bf16"] / self.gpu.hbm_bytes_per_s
        self._floors = cold_floors(profile, arch, self.gpu, tp)
        launch = EFFICIENCIES[profile.gpu].launch
        gap_s = launch.stream_gap_s - launch.graph_gap_s
        self._no_full_graph_s = arch.num_layers * _KERNELS_PER_LAYER * gap_s
        self._first, self._last = ends.first, ends.last
        self._once = _FIRST * ends.first + _LAST * ends.last
        self._bodies: dict[int, float] = {}
        self._least_chunk_s = self._attention.seconds(_SMALLEST_CHUNK, 0, 0, 0)

    def time(self, shape: BatchShape) -> StepTime:
        """Return the duration of a step of that shape."""
        total, tokens = LayerSum.empty(), shape.num_tokens
        if not tokens:
            return total.step_time()
        rows = padded(tokens, self.capture_sizes) or tokens
        self.add_local(total, shape, rows)
        self._add_experts(total, rows)
        self.add_ends(total, shape, rows)
        return total.step_time()

    def decode_run(self, first: BatchShape, steps: int) -> LayerRun:
        """See `twin.engine.gpu.DecodeTimer.decode_run`."""
        run, seqs = LayerRun(steps), first.decode_seqs
        rows = padded(seqs, self.capture_sizes) or seqs
        self._add_body(run, rows)
        run.put(self.arch.num_layers * self._attention_of_run(first, steps), _HBM, _INTERPOLATED)
        self._add_reduces(run, rows)
        self._add_experts(run, rows)
        self.add_ends(run, first, rows)
        return run.close()

    def add_local(self, total: LayerSum, shape: BatchShape, rows: int) -> None:
        """Add all layers but experts: what a rank does before it needs its peers."""
        self._add_body(total, rows)
        for seconds, bound in self.attention_parts(shape):
            total.put(self.arch.num_layers * seconds, bound, _INTERPOLATED)
        if shape.prefill:
            total.put(self._no_full_graph_s, _LAUNCH, _PHYSICS)
        self._add_reduces(total, rows)

    def _add_body(self, total: LayerSum | LayerRun, rows: int) -> None:
        total.put(self.arch.num_layers * self.body_s(rows), self._bound(rows), _INTERPOLATED)

    def _add_reduces(self, total: LayerSum | LayerRun, rows: int) -> None:
        if self.tp > 1:
            num_bytes = float(rows * self.arch.hidden_size * BF16_BYTES)
            # After attention and after the MLP, and once for the sharded embedding.
            repeat = 2 * self.arch.num_layers + self._first
            self.add_collective(total, "all_reduce", num_bytes, self.tp, repeat)

    def _add_experts(self, total: LayerSum | LayerRun, rows: int) -> None:
        if self.arch.moe is not None:
            local = self.arch.moe.num_experts // self.tp
            seconds = self.arch.num_layers * self.experts_s(rows, rows, local)
            total.put(seconds, _HBM, _INTERPOLATED)

    def add_ends(self, total: LayerSum | LayerRun, shape: BatchShape | None, rows: int) -> None:
        """Add what runs once: embedding, last norm, output head and sampler."""
        once_s = sum(self._dense[name](rows) for name in self._once)
        total.put(once_s, _HBM, _INTERPOLATED)
        sampled = 0 if shape is None else shape.sampled_seqs
        if not (sampled and self._last):
            return
        total.put(sum(self._heads[name](sampled) for name in _HEAD), _HBM, _INTERPOLATED)
        if self.tp > 1:
            vocab = -(-self.arch.vocab_size // _VOCAB_PAD) * _VOCAB_PAD
            self.add_collective(total, "all_gather", float(sampled * vocab * BF16_BYTES), self.tp)

    def add_collective(
        self,
        total: LayerSum | LayerRun,
        kind: str,
        num_bytes: float,
        ranks: int,
        repeat: int = 1,
    ) -> None:
        """Add a collective of `num_bytes` (the full buffer)."""
        cost = collective_cost(Collective(kind, num_bytes, ranks, repeat=repeat), self.gpu)
        total.put(cost.seconds, _LINK, SOURCES.index(cost.source))

    def body_s(self, rows: int) -> float:
        """Return one layer's dense parts."""
        seconds = self._bodies.get(rows)
        if seconds is None:
            seconds = 0.0
            for name, times in _PER_LAYER.items():
                if name in self._dense:
                    seconds += times * max(self._dense[name](rows), self._floors.get(name, 0.0))
            self._bodies[rows] = seconds
        return seconds

    def experts_s(self, tokens: float, rows: float, local_experts: int) -> float:
        """Return one MoE layer of a rank that holds `local_experts` whole experts.

        Args:
            tokens: distinct tokens that are routed; uniform routing decides how many experts
                they wake.
            rows: the same with padding, over all ranks whose tokens come here.
            local_experts: experts of this rank.
        """
        moe = moe_of(self.arch)
        if self._experts is None:
            raise ValueError("the profile has no experts")
        active = expected_active_experts(
            tokens, moe.num_experts, moe.experts_per_token, local_experts
        )
        # The table was taken on a rank with all experts: so many tokens bring a rank with a
        # share of them the same routed rows.
        return self._experts(rows * local_experts / moe.num_experts, active)

    def attention_parts(self, shape: BatchShape) -> list[tuple[float, int]]:
        """Return one layer's attention as (seconds, bound) parts.

        The chunk with most work runs beside the decodes as measured; each further chunk adds
        what it takes alone beyond the least launch.
        """
        seqs = shape.decode_seqs
        mean = shape.decode_kv_tokens / seqs if seqs else 0.0
        chunks = sorted(shape.prefill, key=_pairs, reverse=True)
        query, kv = chunks[0] if chunks else (0, 0)
        history = kv - query
        seconds = self._attention.seconds(query, history, seqs, mean)
        longest = shape.decode_kv_max_tokens
        if seqs > 1 and longest > mean:
            lengths = (seqs, mean, shape.decode_kv_min_tokens, longest)
            alpha = self._skew.alpha(query, history, lengths)
            if alpha:
                uneven_s = self._attention.seconds(query, history, seqs, longest)
                seconds += alpha * (uneven_s - seconds)
        parts = [(seconds, _COMPUTE if chunks else _HBM)]
        for query, kv in chunks[1:]:
            alone_s = self._attention.seconds(query, kv - query, 0, 0)
            parts.append((max(0.0, alone_s - self._least_chunk_s), _COMPUTE))
        return parts

    def _attention_of_run(self, first: BatchShape, steps: int) -> Floats:
        """Return `attention_parts` of each step of a run, shape (steps,)."""
        seqs = first.decode_seqs
        ahead = np.arange(steps)
        means = (first.decode_kv_tokens + seqs * ahead) / seqs
        seconds = self._attention.decode_seconds(seqs, means)
        if seqs == 1 or first.decode_kv_max_tokens == first.decode_kv_min_tokens:
            return seconds
        shortest, longest = first.decode_kv_min_tokens + ahead, first.decode_kv_max_tokens + ahead
        alphas = self._skew.alphas(seqs, means, shortest, longest)
        if not alphas.any():
            return seconds
        uneven_s = self._attention.decode_seconds(seqs, longest.astype(np.float64))
        return np.asarray(seconds + alphas * (uneven_s - seconds), dtype=np.float64)

    def _bound(self, rows: int) -> int:
        return _COMPUTE if rows > self._ridge_tokens else _HBM


def _pairs(chunk: tuple[int, int]) -> float:
    query, kv = chunk
    return query * (kv - 0.5 * query)


def moe_of(arch: ModelArch) -> MoeArch:
    """Return the experts of a network that has some."""
    if arch.moe is None:
        raise ValueError(f"{arch.name} has no experts")
    return arch.moe


def _check(profile: HardwareProfile, arch: ModelArch, tp: int) -> None:
    facts = profile.facts
    if profile.kind != "layers" or facts.get("llm") != arch.name or facts.get("tp") != tp:
        raise InputError(
            f"profile {profile.name} holds {facts.get('llm')} with tp {facts.get('tp')}, "
            f"not {arch.name} with tp {tp}",
            remedy="give a layer profile of that network",
        )
    if arch.moe is not None and "moe" not in profile.tables:
        raise InputError(f"profile {profile.name} has no experts", remedy="profile moe.csv too")
