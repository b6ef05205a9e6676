"""One step on the GPU: the launches of a whole forward pass over a batch, ready to be captured."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from calibrate.validation.batch import Batch
from calibrate.validation.network import Layer, Network
from calibrate.validation.paged_kv import Pages

if TYPE_CHECKING:
    import torch

_EPS = 1e-6


@dataclass(frozen=True, slots=True)
class StepInputs:
    """A batch as tensors: its decodes' tokens stand first, then its chunks', then padding.

    Attributes:
        tokens: rows of the dense layers, padding included.
        decodes: rows of decode attention.
        chunk_rows: (first, one after the last) row of the chunks.
        sampled: rows that need logits.
    """

    tokens: int
    ids: "torch.Tensor"
    positions: "torch.Tensor"
    slots: "torch.Tensor"
    decodes: int
    decode_pages: Pages | None
    chunk_rows: tuple[int, int]
    chunk_pages: Pages | None
    sampled: "torch.Tensor"


def step_inputs(network: Network, batch: Batch, padded_tokens: int | None) -> StepInputs:
    """Return a batch's tensors, its requests' blocks taken from the shuffled pool.

    Args:
        network: gives pool, vocabulary and device.
        batch: what runs.
        padded_tokens: rows of the dense layers; None: as many as there are tokens.
    """
    import torch

    device, tokens = network.device, padded_tokens or batch.tokens
    padding = tokens - batch.tokens
    # Padding decodes nothing: requests without context, as engines pad a batch of decodes.
    padded_decodes = 0 if batch.chunks else padding
    lengths = [*batch.decodes, *(0,) * padded_decodes]
    queries = [*(1,) * len(batch.decodes), *(query for query, _ in batch.chunks)]
    tables = _tables(network, batch)
    positions, slots = _places(network, batch, queries, tables)
    free = torch.zeros(padding, dtype=torch.int64, device=device)
    decode_tables = torch.zeros(len(lengths), tables.shape[1], dtype=torch.int32, device=device)
    decode_tables[: len(batch.decodes)] = tables[: len(batch.decodes)]
    starts = [0]
    for query, _ in batch.chunks:
        starts.append(starts[-1] + query)
    first = len(batch.decodes)
    return StepInputs(
        tokens=tokens,
        ids=torch.randint(
            0, network.shapes.vocab, (tokens,), generator=network.random, device=device
        ),
        positions=torch.cat([positions, free]),
        slots=torch.cat([slots, free - 1]),
        decodes=len(lengths) if batch.decodes else 0,
        decode_pages=Pages(decode_tables, _int32(lengths, device), max(batch.decodes))
        if batch.decodes
        else None,
        chunk_rows=(first, first + starts[-1]),
        chunk_pages=Pages(
            tables[first:],
            _int32([kv for _, kv in batch.chunks], device),
            max(kv for _, kv in batch.chunks),
            _int32(starts, device),
            max(query for query, _ in batch.chunks),
        )
        if batch.chunks
        else None,
        sampled=torch.arange(batch.sampled, device=device),
    )


def _tables(network: Network, batch: Batch) -> "torch.Tensor":
    """Block tables int32 [seqs, max_blocks]; no two requests share a block."""
    import torch

    size = network.shapes.block_tokens
    counts = [-(-kv // size) for kv in batch.contexts]
    tables = torch.zeros(len(counts), max(counts), dtype=torch.int32, device=network.device)
    taken = 0
    for row, count in enumerate(counts):
        tables[row, :count] = network.order[taken : taken + count]
        taken += count
    return tables


def _places(
    network: Network, batch: Batch, queries: list[int], tables: "torch.Tensor"
) -> tuple["torch.Tensor", "torch.Tensor"]:
    """(positions, slots) int64 of every token: each request's newest."""
    import torch

    size, device = network.shapes.block_tokens, network.device
    positions, slots = [], []
    for row, (query, kv) in enumerate(zip(queries, batch.contexts, strict=True)):
        mine = torch.arange(kv - query, kv, device=device)
        positions.append(mine)
        slots.append(tables[row].long()[mine // size] * size + mine % size)
    return torch.cat(positions), torch.cat(slots)


def _int32(values: list[int], device: "torch.device") -> "torch.Tensor":
    import torch

    return torch.tensor(values, dtype=torch.int32, device=device)


class StepRun:
    """Launches one step; nothing is allocated or waited for once it is made.

    Args:
        network: what it runs through.
        inputs: the batch.
    """

    def __init__(self, network: Network, inputs: StepInputs) -> None:
        s, rows = network.shapes, inputs.tokens
        self._network, self._inputs = network, inputs
        new = network.embedding.new_zeros
        self._x, self._residual, self._normed = (new(rows, s.hidden) for _ in range(3))
        self._qkv = new(rows, s.qkv_columns)
        heads = (s.heads, s.kv_heads, s.kv_heads)
        self._split = tuple(new(rows, count, s.head_dim) for count in heads)
        self._attended = new(rows, s.heads, s.head_dim)
        self._gate_up, self._active = new(rows, 2 * s.intermediate), new(rows, s.intermediate)
        self._picked = new(len(inputs.sampled), s.hidden)
        self._logits = new(len(inputs.sampled), s.vocab)
        self.next_ids = inputs.sampled.clone()
        """The tokens that greedy sampling takes."""

    def __call__(self) -> None:
        """Launch it."""
        import torch

        network, inputs = self._network, self._inputs
        torch.index_select(network.embedding, 0, inputs.ids, out=self._residual)
        for number in range(network.shapes.layers):
            self._layer(network.layers[number % len(network.layers)])
        self._norm(network.layers[-1].input_norm)
        if not len(inputs.sampled):
            return
        torch.index_select(self._normed, 0, inputs.sampled, out=self._picked)
        torch.matmul(self._picked, network.head.T, out=self._logits)
        torch.argmax(self._logits, dim=-1, out=self.next_ids)

    def _layer(self, layer: Layer) -> None:
        from kernels.activation import silu_mul

        self._norm(layer.input_norm)
        layer.qkv(self._normed, self._qkv)
        self._attention(layer)
        layer.out(self._attended.view(self._inputs.tokens, -1), self._x)
        self._norm(layer.mlp_norm)
        layer.gate_up(self._normed, self._gate_up)
        silu_mul(self._gate_up, out=self._active)
        layer.down(self._active, self._x)

    def _attention(self, layer: Layer) -> None:
        from kernels.rotary import qkv_rotary

        s, network, inputs = self._network.shapes, self._network, self._inputs
        query, key, value = self._split
        qkv_rotary(
            self._qkv, network.cos, network.sin, inputs.positions,
            s.heads, s.kv_heads, s.head_dim, out=(query, key, value),
        )  # fmt: skip
        if s.qk_norm:
            self._norm_heads(layer, query)
            self._norm_heads(layer, key)
        layer.kv.write(key, value, inputs.slots)
        if inputs.decode_pages is not None:
            rows = inputs.decodes
            layer.kv.decode(query[:rows], inputs.decode_pages, self._attended[:rows])
        if inputs.chunk_pages is not None:
            first, last = inputs.chunk_rows
            layer.kv.prefill(query[first:last], inputs.chunk_pages, self._attended[first:last])

    def _norm(self, weight: "torch.Tensor") -> None:
        from kernels.norm.rms_norm import rms_norm

        rms_norm(self._x, weight, eps=_EPS, residual=self._residual, out=self._normed)

    def _norm_heads(self, layer: Layer, heads: "torch.Tensor") -> None:
        from kernels.norm.rms_norm import rms_norm

        rows = heads.view(-1, heads.shape[-1])
        rms_norm(rows, layer.head_norm, eps=_EPS, out=rows)
