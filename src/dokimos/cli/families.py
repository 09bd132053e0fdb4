"""`dokimos families`: the families of instances that can be generated, and their knobs."""

from __future__ import annotations

from typing import Annotated

import typer

from dokimos.cli.completion import family_names
from dokimos.cli.printout import Json, printout


def families(
    name: Annotated[
        str | None, typer.Argument(help="Show the knobs of this family.", autocompletion=family_names)
    ] = None,
    as_json: Json = False,
) -> None:
    """List the families of instances; with a name, show that family's knobs and why its labels hold."""
    from rich.table import Table
    from rich.text import Text

    import dokimos

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
        with printout("families", as_json) as out:
            out.table("knobs", family.knobs, table)
            out.shown([Text(family.theorem)])
        return
    table = Table(title="Families (dokimos generate FAMILY --out FOLDER)", title_justify="left")
    table.add_column("family")
    table.add_column("what makes it hard", overflow="fold")
    found = dokimos.list_families()
    for family in found:
        table.add_row(family.name, family.summary)
    with printout("families", as_json) as out:
        out.table("families", ({"name": each.name, "summary": each.summary} for each in found), table)
