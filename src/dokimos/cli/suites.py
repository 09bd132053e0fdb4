"""`dokimos suites`: the suites that ship with the package."""

from __future__ import annotations

from dokimos.cli.printout import Json, printout


def suites(as_json: Json = False) -> None:
    """List the shipped suites; commands that take a suite also take these names."""
    from rich.table import Table

    import dokimos

    table = Table()
    for column in ("suite", "instances", "families", "timeout", "about"):
        table.add_column(column, justify="right" if column == "instances" else "left")
    found = dokimos.list_suites()
    for suite in found:
        shown = "all" if len(suite.families) > 6 else ", ".join(suite.families)
        timeout = f"{suite.timeout_seconds:g} s"
        table.add_row(suite.name, str(suite.instances), shown, timeout, suite.about)
    with printout("suites", as_json) as out:
        out.table("suites", found, table)
