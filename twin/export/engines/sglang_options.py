"""Options of SGLang's server, with the ranges that its parser does not check.

Source: SGLang 0.5.23, `sglang/srt/arg_groups/fields/*.py`. Its parser checks types and choices
alone; a page size of 0 or a memory fraction of 1.5 pass it, and fail the scheduler later.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from twin.export.options import EngineOptions

Positive = Annotated[int, Field(ge=1)]


class SglangOptions(EngineOptions):
    """A policy's options, as `sglang serve --config` takes them."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    model_path: Annotated[str, Field(pattern=r"^[^-\s]\S*$")] | None = None
    tp_size: Positive | None = None
    ep_size: Positive | None = None
    context_length: Positive | None = None
    max_running_requests: Positive | None = None
    chunked_prefill_size: Positive | None = None
    max_prefill_tokens: Positive | None = None
    page_size: Annotated[int, Field(ge=1, le=10**6)] | None = None
    max_total_tokens: Positive | None = None
    mem_fraction_static: Annotated[float, Field(gt=0, lt=1)] | None = None
    kv_cache_dtype: Literal["auto", "bfloat16", "fp8_e4m3", "fp8_e5m2"] | None = None
    quantization: Literal["fp8"] | None = None
    disable_radix_cache: bool | None = None
    radix_eviction_policy: Literal["lru", "lfu", "slru", "priority"] | None = None
    schedule_policy: Literal["fcfs", "lof", "lpm"] | None = None
    schedule_conservativeness: Annotated[float, Field(gt=0)] | None = None
    enable_priority_scheduling: bool | None = None
    enable_mixed_chunk: bool | None = None
    disable_overlap_schedule: bool | None = None
    disable_decode_cuda_graph: bool | None = None
    disable_prefill_cuda_graph: bool | None = None
    cuda_graph_max_bs_decode: Positive | None = None

    @model_validator(mode="after")
    def _go_together(self) -> "SglangOptions":
        """Refuse a chunk that is no whole number of pages, as its own validation does."""
        chunk, page = self.chunked_prefill_size, self.page_size
        if chunk and page and chunk % page:
            raise ValueError(f"chunked-prefill-size {chunk} is no multiple of page-size {page}")
        return self
