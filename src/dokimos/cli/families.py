"""`dokimos families`: what can be generated, and with which knobs."""

from __future__ import annotations

from typing import Annotated

import typer


def families(
    name: Annotated[str | None, typer.Argument(help="Show the knobs of this family.")] = None,
) -> None:
    """The families of instances; with a name, the knobs of that family and why its labels hold."""
    from rich.table import Table

    import dokimos
    from dokimos.cli.output import console

    out = console()
    if name is not None:
        family = dokimos.find_family(name)
        table = Table(title=f"{name}: {family.summary}", title_justify="left")
        for column in ("knob", "default", "range", "what it does"):
            table.add_column(column, overflow="fold")
        for knob in family.knobs:
            option = f"--{knob.name.replace('_', '-')}"
            span = ", ".join(knob.options) or f"{knob.least:g} to {knob.most:g}"
            default = knob.default if knob.options else f"{knob.default:g}"
            table.add_row(option, default, span, knob.help)
        out.print(table)
        out.print(family.theorem, markup=False)
        return
    table = Table(title="Families (dokimos generate FAMILY --out FOLDER)", title_justify="left")
    table.add_column("family")
    table.add_column("what makes it hard", overflow="fold")
    for family in dokimos.list_families():
        table.add_row(family.name, family.summary)
    out.print(table)
