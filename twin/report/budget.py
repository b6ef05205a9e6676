"""The memory of one GPU, part by part: what a KV capacity follows from, and what is too much."""

from dataclasses import dataclass

from twin.llm.capacity import KvCapacity

WEIGHTS, ACTIVATIONS, GRAPHS, NON_TORCH = "weights", "activations", "CUDA graphs", "non-torch"
KV, MISSING, RESERVE = "KV cache", "KV missing", "reserve"
PARTS = (WEIGHTS, ACTIVATIONS, GRAPHS, NON_TORCH, KV, MISSING, RESERVE)
"""In the order in which they are stacked."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """One GPU of a deployment.

    Attributes:
        tp: tensor parallel ranks.
        parts: bytes by name of `PARTS`. `MISSING` is what the KV cache lacks to hold one longest
            sequence, `RESERVE` what the engine leaves to others: together they may pass the limit.
        limit_bytes: what the GPU has.
        fits: one longest sequence fits.
    """

    tp: int
    parts: dict[str, int]
    limit_bytes: int
    fits: bool

    @property
    def too_much_bytes(self) -> int:
        """By how much all parts together pass what the GPU has; 0: they do not."""
        return max(0, sum(self.parts.values()) - self.limit_bytes)


def budget_of(engine: str, tp: int, found: KvCapacity) -> MemoryBudget:
    """Return the parts of a capacity.

    Args:
        engine: vllm, sglang or trtllm: each reserves in its own way (`twin.llm.capacity`).
        tp: tensor parallel ranks.
        found: the capacity of one GPU.
    """
    blocks = -(-found.max_model_len // found.block_size)
    longest = blocks * found.block_size * found.kv_bytes_per_token_per_gpu
    missing = 0 if found.fits else max(0, longest - found.kv_bytes)
    sizes = (
        found.weights_bytes,
        found.activation_peak_bytes,
        found.cuda_graph_bytes,
        found.non_torch_bytes,
        found.kv_bytes,
        missing,
        max(0, _reserve(engine, found)),
    )
    return MemoryBudget(tp, dict(zip(PARTS, sizes, strict=True)), found.total_bytes, found.fits)


def _reserve(engine: str, found: KvCapacity) -> int:
    if engine == "vllm":
        return found.total_bytes - found.usable_bytes
    if engine == "sglang":  # steps run in what its static share leaves
        return found.total_bytes - found.usable_bytes - found.overhead_bytes
    return found.usable_bytes - found.kv_bytes
