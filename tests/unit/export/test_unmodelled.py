"""Options of running servers that are not modelled, and words that may be a value or the model."""

from fnmatch import fnmatchcase

import pytest

from tests.golden.export.cases import BASE
from twin.errors import InputError
from twin.export.reading.given import Given
from twin.export.reading.latency import UNMODELLED
from twin.export.reading.names import arity, known_names
from twin.export.reading.scenario import Base, scenario_of
from twin.export.reading.sources import combined, read_command, read_text_source

MODEL = "meta-llama/Llama-3.1-8B"


def read(text: str) -> Given:
    return read_text_source(text, "mine")


def notes(text: str) -> tuple[str, ...]:
    base = Base({"workload": BASE["workload"]}, gpu="h100_sxm")
    return scenario_of(read(text), base, name="mine", where="mine").notes


@pytest.mark.parametrize("engine", sorted(UNMODELLED))
def test_every_pattern_is_of_an_option_that_the_engine_has(engine: str) -> None:
    names = known_names(engine)
    for patterns in UNMODELLED[engine].values():
        for pattern in patterns:
            plain = pattern.replace(".*", "")
            assert any(fnmatchcase(name, plain) for name in names), pattern


@pytest.mark.parametrize(
    ("text", "warned"),
    [
        (
            f"vllm serve {MODEL} --speculative-config '{{\"method\": \"ngram\"}}' --port 80",
            "speculative decoding (speculative-config) is not modelled",
        ),
        (
            f"vllm serve {MODEL} --enable-lora --lora-modules a=b c=d",
            "serving LoRA adapters (enable-lora, lora-modules) is not modelled",
        ),
        (f"vllm serve {MODEL} --cpu-offload-gb 4", "offloading weights to the host"),
        (f"vllm serve {MODEL} --kv-cache-memory-bytes 1G", "the KV pool (kv-cache-memory-bytes)"),
        (f"vllm serve {MODEL} -O0", "another way of compiling (optimization-level)"),
        (f"model: {MODEL}\nmax-num-seqs: 8\nspeculative-config: {{method: eagle}}\n", "speculat"),
        (f"sglang serve --model {MODEL} --speculative-algorithm EAGLE", "speculative decoding"),
        (f"sglang serve --model {MODEL} --dp-size 2 --enable-dp-attention", "data or pipeline"),
        (f"trtllm-serve {MODEL} --pp_size 2", "pipeline parallelism under TensorRT-LLM"),
    ],
)  # fmt: skip
def test_options_that_change_latencies_are_a_warning(text: str, warned: str) -> None:
    found = [note for note in notes(text) if note.startswith("Warning: ")]
    assert len(found) == 1
    assert warned in found[0]
    assert found[0].endswith("measured latencies will differ from the forecast.")


@pytest.mark.parametrize(
    "options",
    [
        "--port 80 --host x --served-model-name chat --trust-remote-code --disable-log-requests",
        "--dtype bfloat16 -O3 --no-enable-lora --cpu-offload-gb 0 --nnodes 1 --attention-backend "
        "auto",
    ],
)
def test_harmless_options_warn_of_nothing(options: str) -> None:
    assert not [note for note in notes(f"vllm serve {MODEL} {options}") if "Warning" in note]


def test_a_file_and_a_command_line_warn_once() -> None:
    file = read(f"model: {MODEL}\nmax-num-seqs: 8\nspec-tokens: 3\n")
    command = read_command(["--spec-model", "x", "--spec-tokens", "4"], "args", "vllm")
    assert combined(file, command).unmodelled == {
        "speculative decoding": ("spec-tokens", "spec-model")
    }


@pytest.mark.parametrize(
    "text",
    [
        f"vllm serve --trust-remote-code {MODEL}",
        f"vllm serve --enable-lora --no-enable-log-requests --port 80 {MODEL}",
        f"vllm serve --compilation-config.mode 3 {MODEL}",
        f"trtllm-serve --trust_remote_code --log_level info {MODEL}",
    ],
)
def test_flags_do_not_take_the_model_for_their_value(text: str) -> None:
    assert read(text).model == MODEL


def test_lists_take_all_up_to_the_next_option_as_the_engines_do() -> None:
    assert read(f"vllm serve --lora-modules a=b c=d {MODEL}").model is None
    assert read(f"vllm serve --lora-modules a=b c=d --port 1 {MODEL}").model == MODEL


def test_a_word_that_may_be_the_model_is_told_in_one_line() -> None:
    found = read(f"vllm serve --our-own-flag {MODEL} --max-num-seqs 8")
    assert found.may_hold_model == ("our-own-flag",)
    with pytest.raises(InputError, match="--our-own-flag; what follows was taken as its value"):
        scenario_of(found, Base(gpu="h100_sxm"), name="x", where="mine")
    base = Base({**BASE}, gpu="h100_sxm")
    told = [n for n in scenario_of(found, base, name="x", where="mine").notes if "Warning" in n]
    assert len(told) == 1
    assert "our-own-flag" in told[0]
    assert MODEL not in told[0]
    assert read(f"vllm serve {MODEL} --our-own-flag 3").may_hold_model == ()
    assert read(f"vllm serve --our-own-flag=3 {MODEL}").may_hold_model == ()


def test_words_that_follow_an_option() -> None:
    assert [arity("vllm", n) for n in ("enable-lora", "port", "hf-token", "lora-modules")] == [
        "0", "1", "?", "*",
    ]  # fmt: skip
    assert arity("vllm", "no-such") == arity("vllm", "no-such.part") == ""
    assert arity("trtllm", "trust_remote_code") == "0"
    assert arity("trtllm", "kv_cache_config.dtype") == "1"
