"""How each engine is configured: one file an engine, one line here."""

from twin.export.engines.config import EngineFormat
from twin.export.engines.sglang import SGLANG
from twin.export.engines.trtllm import TRTLLM
from twin.export.engines.vllm import VLLM

ENGINE_FORMATS: dict[str, EngineFormat] = {one.name: one for one in (VLLM, SGLANG, TRTLLM)}
"""By the engine's name in a scenario."""
