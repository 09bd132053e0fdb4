"""`dokimos hunt` and `dokimos reduce`: wrong answers found without end, and made small."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.options import Given, run_options, verifier_names
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from dokimos.api.hunts import HuntState, Reduced


@run_options("timeout", "memory", "cpu", "threads", "jobs", "pass_env", "trust")
def reduce(
    question: Annotated[
        str, typer.Argument(help="CAMPAIGN/INSTANCE, SUITE/INSTANCE, or a network (.onnx).")
    ],
    property: Annotated[Path | None, typer.Argument(help="With a network, the property (.vnnlib).")] = None,
    verifier: Annotated[
        str,
        typer.Option(help="The verifier that is wrong, as for `run`.", autocompletion=verifier_names),
    ] = ...,  # type: ignore[assignment]
    out: Annotated[
        Path, typer.Option(help="The folder for what is left; give the same one again to continue.")
    ] = ...,  # type: ignore[assignment]
    verdict: Annotated[
        str | None,
        typer.Option(
            help="What must stay: wrong-unsat, wrong-sat or bad-witness (default: what is wrong)."
        ),
    ] = None,
    given: Given = None,
    as_json: Json = False,
) -> None:
    """Make a wrong answer as small as it gets, each step proven.

    The folder has the network, the property, a program that asks the tool alone, and the text of an issue.
    Exit code 2 if the tool is not wrong, or not once it is started for this question alone.
    """
    import dokimos
    from dokimos.cli.output import one_interrupt, progress_bar

    settings = dokimos.RunSettings(**{"timeout_seconds": 60.0, **(given or {})})
    with progress_bar("reducing") as show, one_interrupt():
        found = dokimos.reduce(
            question,
            property,
            verifier=verifier,
            out=out,
            verdict=verdict,
            settings=settings,
            progress=show,
        )
    with printout("reduce", as_json) as said:
        said.table("reduced", [_row(found)])
        said.line(f"{out}: {found.cause.tool}: {found.cause.in_words}")
        said.line(
            f"{found.before} numbers became {found.specimen.numbers}, margin {float(found.margin):.3g}; "
            f"{found.asked} questions, {found.cpu_seconds:.0f} CPU-s of the tool; now: {out / 'issue.md'}"
        )


def _row(found: Reduced) -> dict[str, object]:
    form = found.form
    return {name: getattr(form, name) for name in form.__struct_fields__}


@run_options("timeout", "memory", "cpu", "threads", "jobs", "dask", "pass_env", "trust")
def hunt(
    verifier: Annotated[
        list[str],
        typer.Option(help="A verifier, as for `run`; repeatable.", autocompletion=verifier_names),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the hunt; give the same one again to continue.")],
    budget: Annotated[
        str | None, typer.Option(help="How long to hunt in all, such as 1h (default: until Ctrl-C).")
    ] = None,
    networks: Annotated[
        list[str] | None,
        typer.Option("--from", help="A suite whose networks are mutated and asked about too; repeatable."),
    ] = None,
    known: Annotated[
        list[Path] | None,
        typer.Option(help="Causes that are known: a file, or the folder of a hunt; repeatable."),
    ] = None,
    slow: Annotated[
        str | None, typer.Option(help="List answers so many times slower than their siblings, such as 20x.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of all draws.", min=0)] = 0,
    rounds: Annotated[int | None, typer.Option(help="How many rounds of draws in all.", min=1)] = None,
    given: Given = None,
    as_json: Json = False,
) -> None:
    """Draw proven instances without end, and keep each distinct wrong answer, made small.

    The folder is a suite of what was found (`dokimos gate FOLDER` asks a mended tool again), with a folder
    for each finding. If interrupted, the same command continues. Exit code 1 if a wrong answer was found.
    """
    import dokimos
    from dokimos.cli.output import one_interrupt, progress_bar
    from dokimos.core.readable import parse_seconds

    hunting = dokimos.HuntSettings(
        seed=seed,
        budget_seconds=None if budget is None else parse_seconds(budget),
        rounds=rounds,
        slow=None if slow is None else _times(slow),
    )
    settings = dokimos.RunSettings(**{"timeout_seconds": 20.0, "cpu_seconds": 5.0, **(given or {})})
    with progress_bar("hunting") as show, one_interrupt():
        found = dokimos.hunt(
            verifier,
            out=out,
            hunting=hunting,
            settings=settings,
            networks=networks or (),
            known=known or (),
            progress=show,
        )
    with printout("hunt", as_json) as said:
        said.table("causes", _causes(found))
        said.line(f"{out}: {found.in_words}")
        for row in _causes(found):
            said.line(f"{row['cause']}: {row['findings']} found, the smallest has {row['numbers']} numbers")
            said.line(f"      {out / 'findings' / str(row['folder']) / 'issue.md'}")
        for line in found.slow:
            said.line(f"slow: {line}")
    if any(not one.wrong.startswith("crash") for one in found.findings):
        raise typer.Exit(1)


def _causes(found: HuntState) -> list[dict[str, object]]:
    return [
        {
            "cause": key,
            "findings": len(own),
            "folder": f"{own[0].tool}-{own[0].name}",
            "numbers": own[0].numbers,
            "margin": own[0].margin,
            "is_wrong": not own[0].wrong.startswith("crash"),
        }
        for key, own in found.causes.items()
    ]


def _times(text: str) -> float:
    """Read 20x or 20. Raises InputError."""
    from dokimos.core.errors import InputError

    try:
        value = float(text.removesuffix("x"))
    except ValueError:
        value = 0.0
    if not 1 < value < 1e9:
        raise InputError(f"--slow {text[:40]!r} is not a factor above 1, such as 20x.")
    return value
