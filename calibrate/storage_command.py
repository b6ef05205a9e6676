"""`twin-calibrate storage`: a local disk becomes a storage tier."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twin.cli.output import JSON_HELP

if TYPE_CHECKING:
    from rich.table import Table

    from hwmodels.storage_tier import StorageTier, TierProvenance
    from kernels.probes.storage import StorageReport

_NOTE_HELP = "What else a reader of the figures must know; kept with them."


def storage_command(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="On the disk to measure; 768 MiB of room.")
    ],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Tier to write (.json).")],
    minutes: Annotated[
        float, typer.Option("--minutes", min=0.05, max=60, help="Time to spend.")
    ] = 2.0,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help=_NOTE_HELP)] = "",
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Measure reads and writes of KV blocks on a disk, through the page cache and past it."""
    from calibrate.storage_fit import fit_tier
    from hwmodels.storage_tier import write_tier
    from kernels.probes.direct_io import StorageError
    from kernels.probes.storage import measure_storage, plan
    from twin.cli.output import (
        check_distinct,
        check_file,
        check_folder,
        check_json,
        console_for,
        emit_json,
    )
    from twin.cli.progress import shown_work
    from twin.errors import InputError
    from twin.files import write_text

    check_folder(folder, "FOLDER")
    check_file(out, "--out")
    check_json(json_file)
    check_distinct({"--out": out, "--json": json_file})
    place = Path(folder)
    try:
        with shown_work(len(plan(direct=True))) as show:
            report = measure_storage(
                place,
                budget_s=60 * minutes,
                progress=lambda done, _total, what, left_s: show(done, what, left_s),
            )
        tier = fit_tier(Path(out).stem, report, _provenance(place, note))
    except StorageError as error:
        raise InputError(str(error), remedy="name a folder on a local disk") from None
    except ValueError as error:
        raise InputError(str(error), where=f"--minutes {minutes:g}") from None
    write_text(out, write_tier(tier))
    console = console_for(json_file)
    for text in _head(tier, report):
        console.print(text, soft_wrap=True)
    for table in (_measured(tier), _fitted(tier)):
        console.print(table)
    if json_file is not None:
        emit_json(_summary(tier, report), json_file)


def _provenance(folder: Path, note: str) -> "TierProvenance":
    import datetime
    import platform

    from hwmodels.storage_tier import TierProvenance
    from kernels.probes.direct_io import file_system

    device, kind = file_system(folder)
    notes = ["a virtual machine's disk"] if _is_virtual() else []
    return TierProvenance(
        device=device or "unknown",
        file_system=kind or "unknown",
        kernel=f"{platform.system()} {platform.release().partition('-')[0]}",
        date=datetime.date.today().isoformat(),
        note="; ".join([*notes, note] if note else notes),
    )


def _is_virtual() -> bool:
    """Whether the processor says that a hypervisor lies beneath."""
    try:
        return " hypervisor " in Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False


def _head(tier: "StorageTier", report: "StorageReport") -> list[str]:
    where, direct = tier.provenance, tier.direct_io
    text = [f"{tier.name}: {where.device}, {where.file_system}, {where.kernel}, {where.date}"]
    if where.note:
        text.append(f"note: {where.note}")
    if direct.problem:
        text.append(f"O_DIRECT isn't supported here: {direct.problem}; direct I/O is left out")
    else:
        least = ", ".join(f"{axis} {size} B" for axis, size in direct.least_bytes.items())
        text.append(
            f"O_DIRECT asks for alignment: {least}; {len(direct.refused)} of 8 combinations of "
            f"aligned and misaligned are refused"
        )
    if report.left_out:
        text.append(f"{report.left_out} points were left out for want of time")
    return text


def _measured(tier: "StorageTier") -> "Table":
    from twin.units import format_bytes, format_seconds

    table = _table(_ONE, "operation", "block", "median", "mean", "P99", "MB/s")
    for row in tier.rows:
        if row.queue_depth == 1 and row.fragments == 1 and row.block_bytes in _SHOWN:
            table.add_row(
                f"{row.direction} {row.io_mode}",
                format_bytes(row.block_bytes),
                *(
                    format_seconds(s)
                    for s in (row.seconds_median, row.seconds_mean, row.seconds_p99)
                ),
                f"{row.bytes_per_s / 1e6:,.0f}",
            )
    return table


_ONE = "one block at a time (MB/s: block / mean)"
_SHOWN = (2**12, 2**16, 2**20, 2**22)


def _fitted(tier: "StorageTier") -> "Table":
    from twin.units import format_seconds

    errors = {(one.direction, one.io_mode): one for one in tier.held_out}
    table = _table(
        "fitted: t = alpha + n c + bytes / bw; held-out errors: inner block sizes left out in turn",
        "operation", "depth", "alpha", "c", "bw MB/s", "P99/mean", "median %", "P90 %",
    )  # fmt: skip
    for line in tier.lines:
        error = errors.pop((line.direction, line.io_mode), None)
        each_s = line.per_fragment_s
        table.add_row(
            f"{line.direction} {line.io_mode}",
            str(line.queue_depth),
            format_seconds(line.alpha_s),
            "not measured" if each_s is None else format_seconds(each_s),
            f"{line.bytes_per_s / 1e6:,.0f}",
            f"{line.p99_over_mean:.1f}",
            f"{error.median_pct:.0f}" if error else "",
            f"{error.p90_pct:.0f}" if error else "",
        )
    return table


def _table(title: str, *headings: str) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left")
    return table


def _summary(tier: "StorageTier", report: "StorageReport") -> dict[str, Any]:
    from dataclasses import asdict

    found = asdict(tier)
    return {**found, "left_out": report.left_out}
