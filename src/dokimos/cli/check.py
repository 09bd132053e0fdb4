"""`dokimos check`: prove every label again, from the files alone."""

from __future__ import annotations

from typing import Annotated

import typer


def check(
    suite: Annotated[str, typer.Argument(help="A suite's folder, or the name of a shipped suite.")],
) -> None:
    """Prove every label of a suite again, from its files alone. Exit code 1 if one is not proven."""
    from rich.table import Table

    from dokimos.certificates import check as check_truth
    from dokimos.cli.output import console, progress_bar, say
    from dokimos.constructions.recipes import find_suite
    from dokimos.errors import DokimosError, InputError, InvalidProof

    entries = find_suite(suite).entries
    tallies: dict[tuple[str, str, str], list[float | None]] = {}
    failed = unreadable = 0
    with progress_bar("checking", len(entries)) as step:
        for entry in entries:
            try:
                truth = entry.read_truth()
                if truth is None:
                    raise InvalidProof("there is no truth file for it")
                proven = check_truth(entry.read_instance(), truth)
            except DokimosError as error:
                failed += 1
                unreadable += isinstance(error, InputError)
                step(f"{entry.name}: NOT PROVEN")
                say(f"{entry.name}: not proven: {error}")
                continue
            float32 = None if proven.float32 is None else float(proven.float32)
            row = tallies.setdefault((entry.family, truth.label.value, truth.certificate.kind), [])
            row.append(float32)
            step(f"{entry.name}: {truth.label.value}, proven")
    table = Table(title=f"{len(entries) - failed} of {len(entries)} labels proven", title_justify="left")
    for column in (
        "family",
        "label",
        "proof",
        "proven (reals)",
        "proven (float32)",
        "least float32 margin",
    ):
        table.add_column(column, justify="right" if "proven" in column or "margin" in column else "left")
    for (family, label, kind), margins in sorted(tallies.items()):
        safe = [m for m in margins if m is not None]
        least = f"{min(safe):.3g}" if safe else "-"
        table.add_row(family, label, kind, str(len(margins)), str(len(safe)), least)
    console().print(table)
    if failed:
        raise typer.Exit(2 if unreadable else 1)
