"""`GpuPool`: the KV cache of a GPU, as a size to compare policies at."""

from dataclasses import dataclass
from pathlib import Path

from twin.load.capacity_question import CapacityQuestion, answer

DEFAULT_LLM, DEFAULT_GPU = "llama-3.1-8b", "h100_sxm"


@dataclass(frozen=True, slots=True)
class GpuPool:
    """KV that fits beside a network's weights under vLLM's defaults.

    Attributes:
        llm: the network.
        gpu: the GPU, a name in `hwmodels.gpus.GPUS`.
        tp: the fewest of them, as tensor parallel ranks, on which one longest sequence fits.
        kv_tokens: tokens that their pool holds.
    """

    llm: str
    gpu: str
    tp: int
    kv_tokens: int


def gpu_pool(
    llm: str | None, gpu: str | None, kv_cache_dtype: str | None, folder: Path
) -> GpuPool | None:
    """Return the KV pool of the fewest GPUs that a network fits on; None: it fits on none.

    Args:
        llm: a name of `twin models`, or a `config.json`; None: `DEFAULT_LLM`.
        gpu: a name of `twin gpus`; None: `DEFAULT_GPU`.
        kv_cache_dtype: of the KV; None: `auto`.
        folder: where a relative path starts from.

    Raises:
        InputError: an unknown name.
    """
    question = CapacityQuestion(
        model=llm or DEFAULT_LLM,
        gpu=gpu or DEFAULT_GPU,
        kv_cache_dtype=kv_cache_dtype or "auto",
        base=folder,
    )
    found = answer(question)
    tp = found.smallest_tp
    if tp is None:
        return None
    return GpuPool(found.model_name, question.gpu, tp, found.by_tp[tp].kv_tokens)
