"""The answer of `twin capacity` in a terminal: verdict, budget, table over TP."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from twin.llm.capacity import KvCapacity
from twin.load.capacity_question import CapacityAnswer
from twin.units import format_bytes


def print_capacity(console: Console, answer: CapacityAnswer) -> None:
    """Print whether it fits, what takes the memory, and what other TP sizes give."""
    console.print(Text(_verdict(answer), style="bold"), soft_wrap=True)
    console.print(_budget_table(answer.chosen))
    console.print(_tp_table(answer))
    for note in answer.chosen.notes:
        console.print(Text(f"Note: {note}"), soft_wrap=True)


def _verdict(answer: CapacityAnswer) -> str:
    question, chosen = answer.question, answer.chosen
    place = f"{answer.model_name} on {question.tp * question.pp} x {question.gpu}"
    longest = f"{chosen.max_model_len:,} tokens"
    if chosen.fits:
        return (
            f"{place} fits: {format_bytes(chosen.kv_bytes)} of KV cache a GPU, "
            f"{chosen.kv_blocks:,} blocks, {chosen.kv_tokens:,} tokens "
            f"({chosen.max_concurrency:.1f} requests of {longest})."
        )
    tp = answer.smallest_tp
    remedy = f"The smallest TP that fits is {tp}." if tp else "No TP up to 8 fits."
    if chosen.kv_tokens:
        return (
            f"{place} holds {chosen.kv_tokens:,} KV tokens, too few for one request of "
            f"{longest}. {remedy}"
        )
    return f"{place} does not fit: no memory is left for the KV cache. {remedy}"


def _budget_table(chosen: KvCapacity) -> Table:
    table = Table(title="Memory of one GPU", title_justify="left")
    table.add_column("line")
    table.add_column("size", justify="right")
    rows = (
        ("total", chosen.total_bytes),
        (f"budget (utilisation {chosen.gpu_memory_utilization:g})", chosen.usable_bytes),
        ("- weights", chosen.weights_bytes),
        ("- activation peak", chosen.activation_peak_bytes),
        ("- non-torch and NCCL", chosen.non_torch_bytes),
        ("- CUDA graphs", chosen.cuda_graph_bytes),
        ("= KV cache", chosen.kv_bytes),
    )
    for line, size in rows:
        table.add_row(line, format_bytes(size))
    table.add_row("KV bytes a token", f"{chosen.kv_bytes_per_token_per_gpu:,} B")
    return table


def _tp_table(answer: CapacityAnswer) -> Table:
    table = Table(title="By tensor parallelism", title_justify="left")
    for heading in ("TP", "fits", "weights a GPU", "KV a GPU", "KV blocks", "concurrency"):
        table.add_column(heading, justify="right")
    for tp, result in sorted(answer.by_tp.items()):
        table.add_row(
            str(tp),
            "yes" if result.fits else "no",
            format_bytes(result.weights_bytes),
            format_bytes(result.kv_bytes),
            f"{result.kv_blocks:,}",
            f"{result.max_concurrency:.1f}",
        )
    return table
