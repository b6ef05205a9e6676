"""The memory identity, its terms and its refusals."""

from dataclasses import replace

import pytest

from twin.errors import InputError
from twin.llm.capacity import CapacityQuery, capacity, capacity_by_tp, smallest_fitting_tp
from twin.llm.engine_version import default_gpu_memory_utilization, engine_of, parse_version
from twin.llm.models import MODELS
from twin.llm.overhead_model import OverheadParameters, parameters_of
from twin.llm.parallelism import Parallelism

GIB = 2**30
H100 = int(79.1 * GIB)
LLAMA = MODELS["llama-3.1-8b"]
QUERY = CapacityQuery(
    LLAMA, H100, engine_version="0.15.1", gpu_memory_utilization=0.9, max_model_len=8192
)
NO_OVERHEAD = OverheadParameters("vllm", "0.0.0", 0.0, forward_scale=0.0)


def test_the_budget_adds_up() -> None:
    result = capacity(QUERY)
    parts = result.weights_bytes + result.overhead_bytes + result.kv_bytes
    assert parts == pytest.approx(result.usable_bytes, abs=4)
    assert result.usable_bytes == int(0.9 * H100)
    assert result.kv_blocks == result.kv_bytes // (16 * 131_072)
    assert result.kv_tokens == 16 * result.kv_blocks
    assert result.max_concurrency == pytest.approx(result.kv_tokens / 8192)
    assert result.fits
    assert result.schedulable_blocks == result.kv_blocks - 1


def test_one_byte_decides_a_block() -> None:
    per_block = 16 * 131_072
    weights = 10 * GIB
    query = replace(
        QUERY, gpu_memory_utilization=1.0, weights_bytes=weights, max_model_len=160,
        total_memory_bytes=weights + 10 * per_block,
    )  # fmt: skip
    exact = capacity(query, NO_OVERHEAD)
    assert (exact.kv_blocks, exact.fits) == (10, True)
    short = capacity(replace(query, total_memory_bytes=query.total_memory_bytes - 1), NO_OVERHEAD)
    assert (short.kv_blocks, short.fits) == (9, False)


def test_nothing_left_is_zero_blocks_not_an_error() -> None:
    result = capacity(replace(QUERY, arch=MODELS["llama-3.1-70b"]))
    assert (result.kv_blocks, result.kv_bytes, result.fits) == (0, 0, False)


def test_fp8_kv_holds_twice_the_tokens() -> None:
    plain = capacity(QUERY)
    halved = capacity(replace(QUERY, kv_cache_dtype="fp8"))
    assert halved.kv_blocks / plain.kv_blocks == pytest.approx(2.0, abs=0.001)


def test_identity_of_concurrency() -> None:
    # 127,626 blocks of 16 tokens: 997.08 sequences of 2048, as vLLM prints it.
    blocks = 127_626
    query = replace(
        QUERY, gpu_memory_utilization=1.0, weights_bytes=0, max_model_len=2048,
        total_memory_bytes=blocks * 16 * 131_072,
    )  # fmt: skip
    assert capacity(query, NO_OVERHEAD).max_concurrency == pytest.approx(997.08, abs=0.005)


def test_sequences_count_up_to_the_measured_batch_and_longer_steps_leave_less() -> None:
    base = capacity(QUERY).kv_blocks
    assert capacity(replace(QUERY, max_num_seqs=64)).kv_blocks > base
    assert capacity(replace(QUERY, max_num_seqs=128)).kv_blocks == base
    assert capacity(replace(QUERY, max_num_seqs=1024)).kv_blocks == base
    assert capacity(replace(QUERY, max_num_batched_tokens=65_536)).kv_blocks < base
    # the two are alternatives, not a sum: a small step hides behind the sampler
    assert capacity(replace(QUERY, max_num_batched_tokens=256)).kv_blocks == base


def test_graphs_count_since_0_21_unless_eager() -> None:
    query = replace(QUERY, engine_version="0.26.0")
    graphs = capacity(query)
    eager = capacity(replace(query, enforce_eager=True))
    assert graphs.cuda_graph_bytes > 0
    assert eager.cuda_graph_bytes == 0
    assert capacity(QUERY).cuda_graph_bytes == 0


def test_smallest_tp_and_table() -> None:
    query = replace(QUERY, arch=MODELS["llama-3.1-70b"], max_model_len=4096)
    table = capacity_by_tp(query)
    assert sorted(table) == [1, 2, 4, 8]
    assert [table[tp].fits for tp in sorted(table)] == [False, True, True, True]
    assert smallest_fitting_tp(query) == 2
    assert smallest_fitting_tp(replace(query, arch=MODELS["deepseek-v3"])) is None
    # 28 heads cannot be cut in 8
    assert sorted(capacity_by_tp(replace(query, arch=MODELS["qwen2.5-7b"]))) == [1, 2, 4]


def test_hybrid_note_and_unknown_version_note() -> None:
    result = capacity(replace(QUERY, arch=MODELS["gpt-oss-20b"], engine_version="0.14.2"))
    text = " ".join(result.notes)
    assert "window" in text
    assert "0.15.1" in text
    assert "GiB" in text
    assert not any("measured" in note and "never" in note for note in capacity(QUERY).notes)


def test_trtllm_takes_a_share_of_what_is_free_after_loading() -> None:
    # Allocated 16.05 GiB of 17.83 GiB free: 8,219 blocks of 32 (TensorRT-LLM issue 4275).
    result = capacity(
        CapacityQuery(
            MODELS["llama-3.1-8b-fp8"], int(31.84 * GIB), engine="trtllm", engine_version="0.19",
            gpu_memory_utilization=0.9, block_size=32, kv_cache_dtype="fp8",
            free_after_load_bytes=int(17.83 * GIB),
        )
    )  # fmt: skip
    assert result.kv_blocks == pytest.approx(8219, rel=1e-3)


def test_sglang_takes_its_share_before_loading() -> None:
    query = CapacityQuery(
        MODELS["qwen3-32b"], H100, engine="sglang", tp=2, block_size=1, max_model_len=4096
    )
    less = capacity(replace(query, gpu_memory_utilization=0.8))
    more = capacity(replace(query, gpu_memory_utilization=0.9))
    free = H100 - less.non_torch_bytes
    per_token = less.kv_bytes_per_token_per_gpu
    assert more.kv_blocks - less.kv_blocks == pytest.approx(0.1 * free / per_token, abs=1)
    assert capacity(query).gpu_memory_utilization == pytest.approx(0.828, abs=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"engine": "tgi"}, "unknown engine"),
        ({"gpu_memory_utilization": 0.0}, "gpu_memory_utilization"),
        ({"gpu_memory_utilization": 1.01}, "gpu_memory_utilization"),
        ({"total_memory_bytes": 0}, "GPU memory"),
        ({"tp": 3}, "tp can be 1, 2, 4, 8"),
        ({"pp": 33}, "pp can be 1 to 32"),
        ({"ep": 2}, "no experts"),
        ({"tp": 0}, "tp is 0"),
        ({"max_model_len": 0}, "max_model_len"),
        ({"block_size": -1}, "block_size"),
        ({"kv_cache_dtype": "fp5"}, "kv_cache_dtype"),
    ],
)
def test_refusals(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        capacity(replace(QUERY, **change))  # type: ignore[arg-type]


def test_experts_must_divide() -> None:
    with pytest.raises(InputError, match="ep can be 1, 2, 4"):
        Parallelism(tp=4, ep=3).validate(MODELS["mixtral-8x7b"])
    Parallelism(tp=4, ep=4).validate(MODELS["mixtral-8x7b"])
    assert Parallelism(tp=2, pp=3, dp=4).num_gpus == 24


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.15.1", (0, 15, 1)),
        ("vLLM 0.15.1", (0, 15, 1)),
        ("vLLM 0.15.1 fork", (0, 15, 1)),
        ("0.15.1+fork", (0, 15, 1)),
        ("v0.33.0", (0, 33, 0)),
        ("vLLM ~0.9.x", (0, 9, 0)),
        ("vLLM 0.2.4 (PR 2031)", (0, 2, 4)),
        ("TensorRT-LLM ~1.0rc", (1, 0, 0)),
        ("vLLM V1 Jan-2025", (0, 7, 0)),
        ("June 2026", (0, 23, 0)),
        ("SGLang", None),
        ("vLLM V1", None),
        ("", None),
        (None, None),
    ],
)
def test_versions_as_people_write_them(
    text: str | None, version: tuple[int, int, int] | None
) -> None:
    assert parse_version(text) == version


def test_every_spelling_of_a_version_takes_one_set() -> None:
    sets = {
        parameters_of("vllm", text)
        for text in ("0.15.1", "vLLM 0.15.1", "0.15.1 fork", "vLLM 0.15.1+fork")
    }
    assert len(sets) == 1


def test_default_utilisation_rose_with_0_20() -> None:
    assert default_gpu_memory_utilization("vllm", "0.19.1") == 0.9
    assert default_gpu_memory_utilization("vllm", "0.20.0") == 0.92
    assert default_gpu_memory_utilization("vllm", None) == 0.92
    assert default_gpu_memory_utilization("trtllm", "1.0") == 0.9
    assert 0.6 < default_gpu_memory_utilization("sglang", None, 24 * GIB) < 0.7


def test_engine_names() -> None:
    assert engine_of("TensorRT-LLM ~1.0rc") == "trtllm"
    assert engine_of("SGLang 0.5") == "sglang"
    with pytest.raises(InputError, match="choose one of"):
        engine_of("llama.cpp")
