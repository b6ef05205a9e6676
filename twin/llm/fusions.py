"""Which engines fuse small kernels of a layer away, and for which networks."""

# TensorRT-LLM's all-reduce adds the residual, norms, and quantises for the next product, in its
# PyTorch models of these families (`AllReduceFusionOp` in modeling_llama.py and
# modeling_deepseekv3.py; modeling_qwen3.py and modeling_gpt_oss.py have none in 1.0 and 1.1).
_NORMS_IN_ALL_REDUCE = {"trtllm": ("llama", "deepseek", "kimi")}


def norms_in_all_reduce(engine: str, llm: str, tp: int) -> bool:
    """Whether the two norms of each layer are part of the all-reduces before them."""
    return tp > 1 and llm.startswith(_NORMS_IN_ALL_REDUCE.get(engine, ()))
