"""`twin-calibrate plot`: measured against fitted, as pictures."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hwmodels.profile import HardwareProfile

PAGE = "measured-against-fitted.html"


def plot_command(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="What measure wrote, or a profile.")
    ],
    out: Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where the pictures go.")],
) -> None:
    """Draw the rows of a folder or a profile against its fitted forms: SVG files and a page."""
    from calibrate.accuracy.html import svg_of
    from calibrate.measuring.page import charts_page
    from calibrate.measuring.plots import profile_charts
    from calibrate.measuring.session import DRY_RUN
    from calibrate.measuring.summary import PRETENDED
    from twin.cli.output import check_folder
    from twin.files import whole_directory, write_text

    check_folder(out, "--out")
    profile = _profile(source)
    charts = profile_charts(profile)
    drawn = [chart for chart in charts if chart.spec]
    with whole_directory(out) as folder:
        for chart in drawn:
            write_text(folder / f"{chart.name}.svg", svg_of(chart))
        write_text(folder / PAGE, charts_page(profile, charts))
    if profile.engine == DRY_RUN:
        typer.echo(PRETENDED)
    missing = [chart.name for chart in charts if not chart.spec]
    typer.echo(
        f"{Path(out) / PAGE} and {len(drawn)} pictures"
        + (f"; not measured: {', '.join(missing)}" if missing else "")
    )


def _profile(source: str) -> "HardwareProfile":
    """The profile of a file, of a shipped name, or fitted now to a folder's rows."""
    from calibrate.holdout_command import open_named
    from calibrate.measuring.fit import fit_folder

    if Path(source).is_dir():
        return fit_folder(Path(source)).profile
    return open_named(source)
