"""All commands together."""

from __future__ import annotations

from typing import Annotated

import typer

from dokimos import __version__
from dokimos.cli import audit, check, completion, gate, generate, hide, judge, law, properties, run, show
from dokimos.cli import audit as release
from dokimos.cli import check as label
from dokimos.cli import gate as verifiers
from dokimos.cli import generate as data
from dokimos.cli import generate as families
from dokimos.cli import generate as suites
from dokimos.cli import hide as attack
from dokimos.cli import judge as explain
from dokimos.cli import judge as report
from dokimos.cli import profile_command as profile
from dokimos.cli import properties as train
from dokimos.cli import run as init
from dokimos.cli import run as watch
from dokimos.cli import show as replay
from dokimos.cli.output import remarks_shown

app = typer.Typer(
    name="dokimos",
    help="Puts neural-network verifiers and ML models to the test with answers that are proven.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dokimos {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Puts neural-network verifiers and ML models to the test with answers that are proven."""
    context.with_resource(remarks_shown())


app.command("generate", context_settings=generate.CONTEXT)(generate.generate)
app.command("check")(check.check)
app.command("label")(label.label)
app.command("show")(show.show)
app.command("attack")(attack.attack)
app.command("train")(train.train)
app.command("hide")(hide.hide)
app.command("init")(init.init)
app.command("run")(run.run)
app.command("watch")(watch.watch)
app.command("judge")(judge.judge)
app.command("replay", context_settings=replay.CONTEXT)(replay.replay)
app.command("gate")(gate.gate)
app.command("report")(report.report)
app.command("audit")(audit.audit)
app.command("release")(release.release)
app.command("profile")(profile.profile)
app.command("explain")(explain.explain)
app.command("families")(families.families)
app.command("suites")(suites.suites)
app.command("completion")(completion.completion)
app.add_typer(data.app, name="data")
app.add_typer(properties.app, name="properties")
app.add_typer(law.app, name="law")
app.add_typer(verifiers.app, name="verifiers")
