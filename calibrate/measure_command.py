"""`twin-calibrate measure`: ten minutes on a GPU become rows in a folder."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from calibrate.measuring.item import Item
    from calibrate.measuring.machine import Machine

_ONLY_HELP = "Only this family: gemm, prefill, decode, small, probes, or a probe; may be repeated."
_DRY_HELP = "Launch every kernel once, on a CPU if need be, and pretend all seconds."


def measure_command(
    out: Annotated[str, typer.Option("--out", metavar="FOLDER", help="Where the rows go.")],
    minutes: Annotated[
        float, typer.Option("--minutes", min=0.05, max=600, help="Time to spend.")
    ] = 9.0,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="FAMILY", help=_ONLY_HELP)
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="A few small shapes of each kernel and probe.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=_DRY_HELP)] = False,
    as_gpu: Annotated[
        str, typer.Option("--as", metavar="GPU", help="With --dry-run: the GPU to pretend.")
    ] = "h200_sxm",
    seed: Annotated[int, typer.Option("--seed", min=0, help="With --dry-run: of the noise.")] = 0,
) -> None:
    """Measure this machine's GPU: kernels and memory, the most valuable first, within a budget.

    Each row is on disk as soon as it is measured. Run it again with the same folder to go on.
    """
    import time

    started_s = time.monotonic()
    from pathlib import Path

    from calibrate.measuring.journal import Journal
    from calibrate.measuring.machine import pretended_machine, real_machine
    from calibrate.measuring.results import write_results
    from calibrate.measuring.suite import Budget, Suite
    from calibrate.measuring.summary import print_summary
    from twin.cli.output import check_folder
    from twin.cli.progress import shown_work

    check_folder(out, "--out")
    machine = pretended_machine(as_gpu, seed) if dry_run else real_machine()
    plan = _plan(machine, only or [], small=small)
    budget = Budget(60 * minutes, time.monotonic, started_s)
    with Journal(Path(out), machine.session) as journal, shown_work(len(plan)) as show:
        suite = Suite(
            machine.bench, journal, machine.session, budget,
            lambda now: show(now.done, str(now.item), now.left_s),
        )  # fmt: skip
        try:
            suite.run(plan)
        finally:
            # Also after ctrl-C: what was measured is whole.
            write_results(Path(out), journal.kept, suite.outcome)
    print_summary(Path(out), journal.kept, suite.outcome, time.monotonic() - started_s)


def _plan(machine: "Machine", only: list[str], *, small: bool) -> "list[Item]":
    from calibrate.measuring.plan import chosen, kernel_items, smallest
    from calibrate.measuring.probe_plan import ALL, probe_items

    kernels = kernel_items(machine.gpu)
    probes = probe_items(machine.probes, machine.device_facts, machine.gpus, small=small)
    names = [items[0].family for items, _ in probes]
    wanted = [name for asked in only for name in (names if asked == ALL else [asked])]
    queues = [*(smallest(kernels) if small else kernels), *probes]
    families = {item.family for items, _ in queues for item in items}
    return chosen(queues, wanted, families)
