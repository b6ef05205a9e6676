import io

from rich.console import Console

from tests.unit.report.by_hand import hand_result
from tests.unit.report.synthetic import INPUTS, empty_result, toy_result
from twin.report.metrics import summarise
from twin.report.terminal import figure_rows, name_of, print_report, setup_line


def _printed(result):
    stream = io.StringIO()
    console = Console(file=stream, width=120, color_system=None)
    print_report(console, summarise(result), result.inputs, result.notes)
    return stream.getvalue()


def test_report_holds_verdict_latencies_and_caveats():
    result = toy_result()
    text = _printed(result)
    lines = text.splitlines()
    assert lines[0].startswith("M")
    assert "the SLO" in lines[0]
    assert "toy · meta-llama/Llama-3.1-8B-Instruct · h100_sxm tp2 · vllm 0.33.0" in text
    assert next(line for line in lines if line.startswith("Latency")).split() == [
        "Latency", "mean", "P50", "P90", "P95", "P99",
    ]  # fmt: skip
    assert "Note: Collectives are modelled" in text
    assert "between measured points 75.0 %, physics only 25.0 %" in text


def test_figures_of_the_hand_made_run():
    rows = dict(figure_rows(summarise(hand_result(), {"ttft_s": 0.5})))
    assert rows["Requests"] == "3 of 5 finished, 1 rejected, 1 unfinished"
    assert rows["Throughput"] == "0.500 req/s, 30.0 tok/s in, 2.83 tok/s out"
    assert rows["Goodput"] == "0.333 req/s within the SLO (40.0 %)"
    assert rows["KV cache"].endswith("of 21 blocks a replica; prefix hit rate 25.0 %")
    assert "Goodput" not in dict(figure_rows(summarise(hand_result())))


def test_markup_in_a_name_stays_text():
    result = hand_result(name="[bold]x[/bold] [/]")
    assert "[bold]x[/bold] [/]" in _printed(result)


def test_an_empty_run_prints():
    assert "No request reached the engine" in _printed(empty_result())


def test_names_of_inputs():
    assert name_of({"name": "vllm", "version": "0.33.0"}) == "vllm 0.33.0"
    assert name_of(None) == ""
    assert setup_line({}) == ""
    assert "tp2" in setup_line(INPUTS)
    assert "pp1" not in setup_line(INPUTS)
