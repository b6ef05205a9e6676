"""The answer of `twin memory` as a page or as a drawing."""

from twin.memory.explanation import MemoryExplanation
from twin.report.charts.memory import bytes_heat_map
from twin.report.charts.style import themed
from twin.report.html import escaped, figure, notes_section, page, table
from twin.report.memory import (
    SIZE_HEADINGS,
    SIZES,
    STEP,
    STEP_HEADINGS,
    facts_lines,
    notes_of,
    size_cells,
    step_cells,
)


def memory_page(found: MemoryExplanation) -> str:
    """Return the answer as one HTML file that needs nothing else."""
    chart = bytes_heat_map(found)
    head, *facts = facts_lines(found)
    sentences = "".join(f"<p>{escaped(line)}</p>" for line in facts)
    sizes = table(SIZE_HEADINGS, size_cells(found.rows), SIZES)
    step = table(STEP_HEADINGS, step_cells(found.rows), STEP)
    body = [
        f"<header><h1>{escaped(head)}</h1>{sentences}</header>",
        figure(chart),
        f"<section><h2>By block size and KV dtype</h2>{sizes}{step}</section>",
        notes_section(notes_of(found)),
    ]
    return page(f"{found.name} – KV layout", body, [chart])


def memory_svg(found: MemoryExplanation) -> str:
    """Return the heat map as SVG, in the light theme."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(themed(bytes_heat_map(found).spec)))
