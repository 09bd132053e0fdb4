"""`dokimos check`: prove every label again, from the files alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.table import Table

    from dokimos.checker.entry import CheckedEntry
    from dokimos.suites.folder import Suite, SuiteEntry

#: Fewer instances than this are checked faster in one process than it takes to start others.
WORTH_PROCESSES = 24


def check(
    suite: Annotated[str, typer.Argument(help="A suite's folder, or the name of a shipped suite.")],
    jobs: Annotated[int | None, typer.Option(help="How many processes.", min=1)] = None,
    core_only: Annotated[
        bool,
        typer.Option("--core-only", help="Load nothing but the trusted core; generate no missing suite."),
    ] = False,
    plugin_proofs: Annotated[
        bool,
        typer.Option("--plugin-proofs", help="Trust kinds of proof that installed packages add, too."),
    ] = False,
) -> None:
    """Prove every label of a suite again, from its files alone. Exit code 1 if one is not proven."""
    from dokimos.cli.output import console, progress_bar, say
    from dokimos.core.parallel import default_jobs, each
    from dokimos.suites.finding import find_suite

    check_entry = _checker(core_only=core_only, plugin_proofs=plugin_proofs)
    entries = find_suite(suite, make=None if core_only else _generated).entries
    processes = jobs or (default_jobs() if len(entries) >= WORTH_PROCESSES else 1)
    checked: list[CheckedEntry] = []
    with progress_bar("checking", len(entries)) as step:
        for _, one in each(check_entry, entries, jobs=processes):
            checked.append(one)
            step(f"{one.name}: {one.label}, proven" if one.is_proven else f"{one.name}: NOT PROVEN")
    for one in sorted(checked, key=lambda c: c.name):
        if not one.is_proven:
            say(f"{one.name}: not proven: {one.problem}")
    console().print(_table(checked))
    failed = [one for one in checked if not one.is_proven]
    if failed:
        raise typer.Exit(2 if any(one.is_unreadable for one in failed) else 1)


def _checker(*, core_only: bool, plugin_proofs: bool) -> Callable[[SuiteEntry], CheckedEntry]:
    """What checks one entry. With the core only, nothing that knows of plug-ins is loaded."""
    if core_only:
        from dokimos.checker.entry import check_entry
        from dokimos.core.errors import InputError

        if plugin_proofs:
            raise InputError("The trusted core has no plug-ins; give --core-only or --plugin-proofs.")
        return check_entry
    from dokimos.provers.plugin_kinds import check_entry_naming_plugins, check_entry_with_plugins

    return check_entry_with_plugins if plugin_proofs else check_entry_naming_plugins


def _generated(name: str) -> Suite:
    """A shipped suite, generated into the cache where it is not there yet."""
    from dokimos.constructions.generation import shipped_suite

    return shipped_suite(name)


def _table(checked: list[CheckedEntry]) -> Table:
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
