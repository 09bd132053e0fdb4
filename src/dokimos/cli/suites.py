"""`dokimos suites`: which suites ship with the package."""

from __future__ import annotations


def suites() -> None:
    """The shipped suites; each name stands for its suite wherever a command takes one."""
    from rich.table import Table

    from dokimos.cli.output import console
    from dokimos.constructions.recipes import shipped_recipe
    from dokimos.suites.finding import shipped_names

    table = Table()
    for column in ("suite", "instances", "families", "timeout", "about"):
        table.add_column(column, overflow="fold", justify="right" if column == "instances" else "left")
    for name in shipped_names():
        recipe = shipped_recipe(name)
        families = sorted({draw.family for draw in recipe.draws})
        shown = "all" if len(families) > 6 else ", ".join(families)
        table.add_row(name, str(recipe.size), shown, f"{recipe.timeout_seconds:g} s", recipe.about)
    console().print(table)
