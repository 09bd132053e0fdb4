"""`dokimos check`: prove every label again, from the files alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.printout import Json, printout
from dokimos.cli.suite_options import Jobs, PluginProofs, SuiteName

if TYPE_CHECKING:
    from rich.table import Table

    from dokimos.checker.entry import CheckedEntry


def check(
    suite: SuiteName,
    jobs: Jobs = None,
    core_only: Annotated[
        bool,
        typer.Option("--core-only", help="Load only the trusted core; do not generate a missing suite."),
    ] = False,
    plugin_proofs: PluginProofs = False,
    as_json: Json = False,
) -> None:
    """Prove every label of a suite again, from its files alone. Exit code 1 if one is not proven.

    If a file cannot be read the code is 2, and 3 if Dokimos itself failed on one; the others are listed all
    the same. Instances without a label are counted separately; `dokimos label` looks for labels for them.
    Each network is also cross-checked with onnxruntime at a few points, unless --core-only is given.
    """
    import dokimos
    from dokimos.cli.output import cross_check_lines, progress_bar, say, starting_over

    with starting_over(), progress_bar("checking") as show:
        checked = dokimos.check(
            suite, jobs=jobs, core_only=core_only, plugin_proofs=plugin_proofs, progress=show
        )
    for one in sorted(checked.failed, key=lambda failed: failed.name):
        say(f"{one.name}: not proven: {one.problem}")
    with printout("check", as_json) as out:
        out.table("labels", checked.entries, _table(checked.entries) if checked.entries else None)
        if checked.unlabelled:
            count = len(checked.unlabelled)
            which = (
                f"{count} instance{'' if count == 1 else 's'} without a label" if checked.entries else ""
            )
            out.line(
                which or f"no labels: none of {count} instances has a truth file, so nothing was checked"
            )
        for line in cross_check_lines(checked.cross_checks):
            out.line(line)
        if checked.failed:
            unreadable = any(one.is_unreadable for one in checked.failed)
            raise typer.Exit(3 if any(one.is_fault for one in checked.failed) else 2 if unreadable else 1)


def _table(checked: Sequence[CheckedEntry]) -> Table:
    from rich.table import Table

    proven = [one for one in checked if one.is_proven]
    table = Table(title=f"{len(proven)} of {len(checked)} labels proven", title_justify="left")
    for column in ("family", "label", "proof"):
        table.add_column(column)
    for column in ("proven (reals)", "proven (float32)", "least float32 margin"):
        table.add_column(column, justify="right")
    rows: dict[tuple[str, str, str], list[float | None]] = {}
    for one in proven:
        rows.setdefault((one.family, one.label, one.kind), []).append(one.float32_margin)
    for (family, label, kind), margins in sorted(rows.items()):
        safe = [m for m in margins if m is not None]
        least = f"{min(safe):.3g}" if safe else "-"
        table.add_row(family, label, kind, str(len(margins)), str(len(safe)), least)
    return table
