"""How long one step takes on the GPU: the hot path of every simulation.

The dense part of a step depends on few numbers and is cached. Decode attention is a chain of
straight lines in the KV tokens of the batch, so a step of decodes costs two look-ups and one
multiply-add, and a run of such steps can be advanced by `decode_form` without asking again.
"""

import math
from dataclasses import dataclass

from hwmodels.ops import CostModel
from twin.llm.arch import ModelArch
from twin.llm.attention_layers import AttentionLayers
from twin.llm.cuda_graphs import padded
from twin.llm.decode_piece import LAUNCH, PHYSICS, DecodePiece
from twin.llm.decode_run import DecodeRun
from twin.llm.lowering import Precision, body_ops, check_shards, head_ops
from twin.llm.op_sum import OpSum
from twin.llm.prefill_grid import PrefillGrid
from twin.llm.stages import WHOLE, Ends
from twin.step import BatchShape

# What a layer takes longer in a step that runs without a full CUDA graph, as every step with
# prefill does: 0.06-0.10 ms explained TTFT in runs of vLLM 0.15.1 (9.9 % error without, 3.6 with).
NO_FULL_GRAPH_LAYER_S = 0.08e-3

# Operations the host launches in an eager layer: not fused as a compiled graph's, and views and
# metadata cost as well. Fitted: 8 sequences of Qwen3-8B decode at 227.8 tokens/s on an A100 with
# enforce_eager (vLLM issue 42058, 1k context), at the measured 44 us an operation; its other
# contexts (4k to 16k) come out within 3 %.
EAGER_OPS_PER_LAYER = 22

# Cache write, attention, and the launch of the graph that follows, where a graph is in pieces.
_ATTENTIONLAUNCHES = 3

# Up to so many tokens of a step without a graph every number is priced on its own; beyond, knots
# are a tile apart, or a 64th of the power of two below.
EXACT_TOKENS = 512
TILE = 64

# Knots of the decode lines: mean context 1, 16, then four to an octave. Powers of two are knots,
# so window sizes and split thresholds are.
KNOTS_PER_OCTAVE = 4
FIRST_KNOT = 4 * KNOTS_PER_OCTAVE

Split = tuple[float, float, float, float]


@dataclass(slots=True)
class StepTime:
    """Duration of a step.

    Attributes:
        seconds: GPU time, or the time to launch it if that is longer.
        bound: index into `BOUNDS` (compute, hbm, link, launch): launch if launching took longer
            than the GPU, else the largest share.
        by_bound: seconds by what limited them, in the order of `BOUNDS`; what launching takes
            beyond the GPU's time is launch's.
        by_source: seconds by how they were obtained, in the order of `SOURCES`.
    """

    seconds: float
    bound: int
    by_bound: Split
    by_source: Split


@dataclass(slots=True)
class Line:
    """Decode attention between two knots: `base_s + slope_s * kv_tokens` up to `last_kv`."""

    base_s: float
    slope_s: float
    last_kv: int
    bound: int
    source: int
    kernels: int


@dataclass(slots=True)
class _DecodeStep:
    """The part of a decode-only step that doesn't depend on its KV, and its lines by knot."""

    dense: OpSum
    floor_s: float
    lines: dict[int, tuple[float, Line]]


class StepTimer:
    """Times steps of one replica, or of one pipeline stage of it, on one GPU type.

    Args:
        cost_model: prices operations of one GPU under one engine version.
        tp: ranks that share each layer.
        capture_sizes: batch sizes captured as CUDA graphs (`cuda_graphs.capture_sizes`); a size
            above the last, and every size if there is none, launches kernel by kernel.
        eager: CUDA graphs and compilation are off (`enforce_eager`). Every step then runs without
            a graph, and launches more operations. Its rows count as those of the graph that it
            would have run as: eager mode pads nothing, but that this saves more than leaving the
            graph costs nobody has measured, so no step is cheaper than with graphs.
        ep: of the `tp` ranks, those that share out whole experts.
        no_full_graph_s: what a step without a full CUDA graph takes longer; None:
            `NO_FULL_GRAPH_LAYER_S` a layer.
        gap_s, gap_per_seq_s: what the GPU waits for the host between steps, however far ahead
            they are decided, and for each sequence of the step.
        mixed_graphs: steps with prefill run as graphs of pieces up to the largest captured size;
            else they launch kernel by kernel and are not padded.
        full_decode_graph: a captured step of decodes is one CUDA graph; else graphs of pieces
            around attention, which is launched on its own.
        fused_norms: norms are part of the all-reduces (`twin.llm.fusions`).
        ends: which ends of the network `arch` has; a stage in between looks no token up and
            samples none.

    Decode lengths are taken as even: `decode_kv_max_tokens` isn't read, since no public fit
    says what one long sequence costs in a batch of short ones.
    """

    def __init__(
        self,
        cost_model: CostModel,
        arch: ModelArch,
        precision: Precision,
        tp: int,
        capture_sizes: tuple[int, ...] = (),
        eager: bool = False,
        ep: int = 1,
        no_full_graph_s: float | None = None,
        full_decode_graph: bool = True,
        mixed_graphs: bool = True,
        gap_s: float = 0.0,
        gap_per_seq_s: float = 0.0,
        fused_norms: bool = False,
        ends: Ends = WHOLE,
    ) -> None:
        check_shards(arch, tp)
        self.cost_model, self.arch, self.precision = cost_model, arch, precision
        self.tp, self.ep, self.eager = tp, ep, eager
        self._ends = ends
        self.capture_sizes = capture_sizes
        self._layers = AttentionLayers(arch, precision.kv_dtype, tp)
        self.prefill_grid = PrefillGrid(cost_model, self._layers)
        self._full_decode_graph = full_decode_graph
        self.gap_s, self.gap_per_seq_s = gap_s, gap_per_seq_s
        self._fused_norms = fused_norms
        self.mixed_sizes = self.capture_sizes if mixed_graphs else ()
        # Launching takes longer than the work it starts: the last layer runs after its launch.
        self.tail = 1.0 / arch.num_layers if eager else 0.0
        if no_full_graph_s is None:
            no_full_graph_s = NO_FULL_GRAPH_LAYER_S * arch.num_layers
        self.extra_s = no_full_graph_s
        self._bodies: dict[int, OpSum] = {}
        self._heads: dict[int, OpSum] = {}
        self._lines: dict[tuple[int, int], Line] = {}
        self._decode_steps: dict[tuple[int, int], _DecodeStep] = {}
        self._pieces: dict[tuple[int, int], DecodePiece] = {}

    def time(self, shape: BatchShape) -> StepTime:
        """Return the duration of a step of that shape."""
        if shape.prefill:
            return self._mixed(shape)
        seqs, kv_tokens = shape.decode_seqs, shape.decode_kv_tokens
        if not seqs:
            return StepTime(0.0, LAUNCH, (0.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))
        step, base_s, line = self._decode_line(seqs, shape.sampled_seqs, kv_tokens)
        attention_s = line.base_s + line.slope_s * kv_tokens
        seconds = base_s + line.slope_s * kv_tokens
        by_bound, by_source = step.dense.by_bound.copy(), step.dense.by_source.copy()
        by_bound[line.bound] += attention_s
        by_source[line.source] += attention_s
        bound = by_bound.index(max(by_bound))
        launch_base_s, launch_slope_s = self._launch_line(step.floor_s, base_s, line.slope_s)
        launched_s = launch_base_s + launch_slope_s * kv_tokens
        if seconds < launched_s:
            by_bound[LAUNCH] += launched_s - seconds
            by_source[PHYSICS] += launched_s - seconds
            seconds, bound = launched_s, LAUNCH
        return StepTime(
            seconds,
            bound,
            (by_bound[0], by_bound[1], by_bound[2], by_bound[3]),
            (by_source[0], by_source[1], by_source[2], by_source[3]),
        )

    def decode_form(self, seqs: int, kv_tokens: int) -> tuple[float, float, int]:
        """Return (base_s, slope_s, last_kv): what `time` says of decode-only steps from here on.

        A step of `seqs` decoding and sampling sequences over any kv in [kv_tokens, last_kv] takes
        exactly `base_s + slope_s * kv`, or `base_s` if the slope is 0.
        """
        piece = self.decode_piece(seqs, kv_tokens)
        waits, last_kv = piece.short_s(kv_tokens) > 0, piece.last_kv
        # Bisect for the last kv on this side of the launches; both lines are monotone.
        if (piece.short_s(last_kv) > 0) != waits:
            low, last_kv = kv_tokens, last_kv - 1
            while low < last_kv:
                middle = (low + last_kv + 1) // 2
                if (piece.short_s(middle) > 0) == waits:
                    low = middle
                else:
                    last_kv = middle - 1
        if waits:
            return piece.launch_base_s, piece.launch_slope_s, last_kv
        return piece.base_s, piece.slope_s, last_kv

    def decode_piece(self, seqs: int, kv_tokens: int) -> DecodePiece:
        """Return all that `time` goes by for decode-only steps from here on."""
        place = seqs, _knot(kv_tokens / seqs)
        piece = self._pieces.get(place)
        if piece is None:
            piece = self._pieces[place] = self._piece(seqs, kv_tokens)
        return piece

    def decode_run(self, first: BatchShape, steps: int) -> DecodeRun:
        """See `twin.engine.gpu.DecodeTimer.decode_run`."""
        return DecodeRun(self, first.decode_seqs, first.decode_kv_tokens, steps)

    def _piece(self, seqs: int, kv_tokens: int) -> DecodePiece:
        step, base_s, line = self._decode_line(seqs, seqs, kv_tokens)
        launch_base_s, launch_slope_s = self._launch_line(step.floor_s, base_s, line.slope_s)
        return DecodePiece(
            base_s,
            line.slope_s,
            line.base_s,
            line.last_kv,
            launch_base_s,
            launch_slope_s,
            line.bound,
            line.source,
            tuple(step.dense.by_bound),
            tuple(step.dense.by_source),
            _knot_kv(seqs, _knot(kv_tokens / seqs)) - 1,  # which is rounded
        )

    def _launch_line(self, floor_s: float, base_s: float, slope_s: float) -> tuple[float, float]:
        """A step that waits for its launches, over KV: they, and the layer launched last."""
        return floor_s + self.tail * base_s, self.tail * slope_s

    def floor_s(self, kernels: int, *, graph: bool) -> float:
        """Return what launching so many kernels of a step takes at least.

        `graph`: the step would run as a CUDA graph if those were on.
        """
        if self.eager:
            graph, kernels = False, max(kernels, EAGER_OPS_PER_LAYER * self.arch.num_layers)
        return self.cost_model.launch_floor_s(kernels, graph=graph)

    def _mixed(self, shape: BatchShape) -> StepTime:
        tokens = shape.num_tokens
        size = padded(tokens, self.mixed_sizes)
        total = self._body_between(tokens) if size is None else self.body(size).copy()
        total.merge(self.head(shape.sampled_seqs))
        joined = False
        for query, kv in shape.prefill:
            seconds, bound, source, kernels = self.prefill_grid.at(query, kv, joined)
            total.put(seconds, bound, source)
            total.kernels += kernels
            joined = True
        if shape.decode_seqs:
            line = self.line(shape.decode_seqs, shape.decode_kv_tokens)
            attention_s = line.base_s + line.slope_s * shape.decode_kv_tokens
            total.put(attention_s, line.bound, line.source)
            total.kernels += line.kernels
        seqs = shape.decode_seqs + len(shape.prefill)
        host_s = self.extra_s + self.gap_s + self.gap_per_seq_s * seqs
        total.put(host_s, LAUNCH, PHYSICS)
        floor_s = self.floor_s(total.kernels, graph=size is not None)
        return _step_time(total, floor_s + self.tail * total.seconds)

    def _decode_line(
        self, seqs: int, sampled: int, kv_tokens: int
    ) -> tuple[_DecodeStep, float, Line]:
        step = self._decode_steps.get((seqs, sampled))
        if step is None:
            kernels = self.line(seqs, kv_tokens).kernels
            step = self._decode_steps[seqs, sampled] = self._decode_step(seqs, sampled, kernels)
        knot = _knot(kv_tokens / seqs)
        found = step.lines.get(knot)
        if found is None:
            line = self.line(seqs, kv_tokens)
            found = step.lines[knot] = (step.dense.seconds + line.base_s, line)
        return step, found[0], found[1]

    def _decode_step(self, seqs: int, sampled: int, attention_kernels: int) -> _DecodeStep:
        size = padded(seqs, self.capture_sizes)
        dense = self.body(size or seqs).copy()
        dense.merge(self.head(sampled))
        host_s = self.gap_s + self.gap_per_seq_s * seqs
        if size is None or self.eager:
            host_s += self.extra_s
        if host_s:
            dense.put(host_s, LAUNCH, PHYSICS)
        kernels = dense.kernels + attention_kernels
        floor_s = self.floor_s(kernels, graph=size is not None)
        if not self._full_decode_graph:
            alone = _ATTENTIONLAUNCHES * self.arch.num_layers
            floor_s = max(floor_s, self.cost_model.launch_floor_s(alone, graph=False))
        return _DecodeStep(dense, floor_s, {})

    def line(self, seqs: int, kv_tokens: int) -> Line:
        """The straight line of decode attention around `kv_tokens`: a chord between two knots."""
        knot = _knot(kv_tokens / seqs)
        line = self._lines.get((seqs, knot))
        if line is None:
            start, end = _knot_kv(seqs, knot), _knot_kv(seqs, knot + 1)
            first, second = (
                OpSum().add(self.cost_model, self._layers.decode(seqs, kv, -(-kv // seqs)))
                for kv in (start, end)
            )
            slope_s = (second.seconds - first.seconds) / (end - start)
            last_kv = end
            while _knot(last_kv / seqs) > knot:
                last_kv -= 1
            bound, source = second.largest()
            base_s = first.seconds - slope_s * start
            line = Line(base_s, slope_s, last_kv, bound, source, first.kernels)
            self._lines[seqs, knot] = line
        return line

    def body(self, tokens: int) -> OpSum:
        """Return what sees every one of so many tokens."""
        body = self._bodies.get(tokens)
        if body is None:
            ops = body_ops(
                self.arch,
                self.precision,
                self.tp,
                tokens,
                self.ep,
                self._fused_norms,
                self._ends,
            )
            body = self._bodies[tokens] = OpSum().add(self.cost_model, ops)
        return body

    def _body_between(self, tokens: int) -> OpSum:
        """Return a fresh sum of what sees every token, between two knots if there are many.

        Prompts hardly ever repeat a length. Products advance in tiles: their time jumps after a
        multiple of the tile, so knots come in pairs, a multiple and the token after it.
        """
        step = max(TILE, 2 ** (tokens.bit_length() - 1) // TILE)
        beyond = tokens % step
        if tokens <= EXACT_TOKENS or not beyond:
            return self.body(tokens).copy()
        low = tokens - beyond + 1
        return self.body(low).between(self.body(low - 1 + step), (beyond - 1) / (step - 1))

    def head(self, sampled: int) -> OpSum:
        """Return the output layer over so many sequences."""
        head = self._heads.get(sampled)
        if head is None:
            ops = head_ops(self.arch, self.tp, sampled) if self._ends.last else []
            head = self._heads[sampled] = OpSum().add(self.cost_model, ops)
        return head


def _step_time(total: OpSum, floor_s: float) -> StepTime:
    """Return the sum as a step that takes at least `floor_s` to launch."""
    by, source = total.by_bound, total.by_source
    bound = by.index(max(by))
    if floor_s > total.seconds:
        total.put(floor_s - total.seconds, LAUNCH, PHYSICS)
        total.seconds, bound = floor_s, LAUNCH
    return StepTime(
        total.seconds,
        bound,
        (by[0], by[1], by[2], by[3]),
        (source[0], source[1], source[2], source[3]),
    )


def _knot(mean_tokens: float) -> int:
    """The number of the knot at or below a mean context; the first covers 1 to 16 tokens."""
    if mean_tokens < 16:
        return FIRST_KNOT - 1
    return int(KNOTS_PER_OCTAVE * math.log2(mean_tokens))


def _knot_kv(seqs: int, knot: int) -> int:
    if knot < FIRST_KNOT:
        return seqs
    return round(seqs * 2 ** (knot / KNOTS_PER_OCTAVE))
