"""`twin-calibrate accuracy`: how close the twin comes to measured closed-loop serving rows."""

from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.output import (
    JSON_HELP,
    check_alone,
    check_distinct,
    check_file,
    check_folder,
    check_json,
    console_for,
    emit_json,
)

if TYPE_CHECKING:
    from calibrate.accuracy.rows import Row

_CSV_HELP = "Measured closed-loop serving rows; several tables are judged as one."
_HTML_HELP = "Write tables and residual plots as a page to FILE."
_MARKDOWN_HELP = "Write the tables as Markdown to FILE."
_PLOTS_HELP = "Write the residual plots as SVG files into FOLDER."
_ABLATION_HELP = "Leave out one term after the other, and say what each is worth."
_HALVES_HELP = "Fit on every other row of each group, and judge the rows between them."
_FIT_HELP = "Fit the costs to these rows instead, and print the source of serving_fits.py."
_SKIP_HELP = "Leave out rows whose KV cache may run short: they take the slow engine."


def accuracy_command(
    tables: Annotated[list[str], typer.Argument(metavar="CSV…", help=_CSV_HELP)],
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
    html_file: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help=_HTML_HELP)
    ] = None,
    markdown_file: Annotated[
        str | None, typer.Option("--markdown", metavar="FILE", help=_MARKDOWN_HELP)
    ] = None,
    plots: Annotated[
        str | None, typer.Option("--plots", metavar="FOLDER", help=_PLOTS_HELP)
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes.")] = 1,
    fit: Annotated[bool, typer.Option("--fit", help=_FIT_HELP)] = False,
    ablation: Annotated[bool, typer.Option("--ablation", help=_ABLATION_HELP)] = False,
    halves: Annotated[bool, typer.Option("--halves", help=_HALVES_HELP)] = False,
    skip_scarce: Annotated[bool, typer.Option("--skip-scarce", help=_SKIP_HELP)] = False,
) -> None:
    """Predict measured rows and report the errors, fitted and held out apart."""
    from calibrate.accuracy.html import accuracy_charts, accuracy_page, svg_of
    from calibrate.accuracy.judge import judge
    from calibrate.accuracy.markdown import as_markdown
    from calibrate.accuracy.report import as_json, print_report
    from calibrate.accuracy.rows import read_tables
    from twin.files import whole_directory, write_text

    files = {"--html": html_file, "--markdown": markdown_file}
    _check_outputs(tables, json_file, files, plots)
    others = {"--json": json_file, "--html": html_file, "--plots": plots}
    if fit:
        check_alone("--fit", {**others, **files, "--ablation": ablation, "--halves": halves})
    if ablation:
        check_alone("--ablation", {**others, "--halves": halves})
    if halves:
        check_alone("--halves", others)
    rows = read_tables(tables)
    if fit:
        from calibrate.accuracy.serving_fit import fit_serving, literal

        typer.echo(literal(fit_serving(rows, jobs)), nl=False)
        return
    if ablation or halves:
        text = _side_table(rows, jobs, ablation=ablation)
        typer.echo(text, nl=False)
        if markdown_file is not None:
            write_text(markdown_file, text)
        return
    judgement = judge(rows, jobs, reference=not skip_scarce, progress=_progress)
    print_report(judgement, console_for(json_file))
    if html_file is not None:
        write_text(html_file, accuracy_page(judgement))
    if markdown_file is not None:
        write_text(markdown_file, as_markdown(judgement))
    if plots is not None:
        with whole_directory(plots) as folder:
            for chart in filter(lambda chart: chart.spec, accuracy_charts(judgement)):
                write_text(folder / f"accuracy-{chart.name}.svg", svg_of(chart))
    emit_json(as_json(judgement), json_file)


def _check_outputs(
    tables: list[str], json_file: str | None, files: dict[str, str | None], plots: str | None
) -> None:
    check_json(json_file, inputs=tables)
    for option, name in files.items():
        if name is not None:
            check_file(name, option, inputs=tables)
    if plots is not None:
        check_folder(plots, "--plots")
    check_distinct({"--json": json_file, **files, "--plots": plots})


def _side_table(rows: "list[Row]", jobs: int, *, ablation: bool) -> str:
    from calibrate.accuracy.markdown import ablation_markdown, groups_markdown

    if ablation:
        from calibrate.accuracy.ablation import ablate

        return ablation_markdown(ablate(rows, jobs))
    from calibrate.accuracy.halves import judge_halves

    return groups_markdown(judge_halves(rows, jobs))


def _progress(done: int, total: int) -> None:
    if typer.get_text_stream("stderr").isatty():
        typer.echo(f"\r{done}/{total} predictions", err=True, nl=done == total)
