"""`dokimos suites`: which suites ship with the package."""

from __future__ import annotations


def suites() -> None:
    """The shipped suites; each name stands for its suite wherever a command takes one."""
    from rich.table import Table

    import dokimos
    from dokimos.cli.output import console

    table = Table()
    for column in ("suite", "instances", "families", "timeout", "about"):
        table.add_column(column, overflow="fold", justify="right" if column == "instances" else "left")
    for suite in dokimos.list_suites():
        shown = "all" if len(suite.families) > 6 else ", ".join(suite.families)
        timeout = f"{suite.timeout_seconds:g} s"
        table.add_row(suite.name, str(suite.instances), shown, timeout, suite.about)
    console().print(table)
