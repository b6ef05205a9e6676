"""TensorRT-LLM's PyTorch backend: what its executor decides at every iteration."""

from twin.scheduling.trtllm.cuda_graphs import trtllm_capture_sizes, trtllm_padded
from twin.scheduling.trtllm.limits import TrtllmLimits, trtllm_defaults
from twin.scheduling.trtllm.scheduler import TrtllmScheduler

__all__ = [
    "TrtllmLimits",
    "TrtllmScheduler",
    "trtllm_capture_sizes",
    "trtllm_defaults",
    "trtllm_padded",
]
