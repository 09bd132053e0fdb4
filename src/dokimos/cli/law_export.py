"""`dokimos law export`: laws as instances for any verifier."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dokimos.cli import INTERRUPTED, one_thread
from dokimos.cli.law_options import Constrained, DomainOption, Free, Laws, NoCode

#: How many instances without a label, or laws and rows without an instance, are listed.
_NAMED = 5


def export(
    laws: Laws,
    out: Annotated[Path, typer.Option(help="A new folder for the suite, or one that was interrupted.")],
    model: Annotated[
        str | None, typer.Option(help="The network: NAME.onnx (default: the domain's own).")
    ] = None,
    domain: DomainOption = None,
    rows: Annotated[
        int | None, typer.Option(help="Make an instance around each of this many rows of the data.", min=1)
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            help="With --rows: how far numbers may move, as a share of their range: 1%,2%,5% (1% unless "
            "given)."
        ),
    ] = None,
    free: Free = "",
    vnnlib: Annotated[
        str,
        typer.Option(
            help="1.0: one product network for each instance; 2.0: properties of several networks."
        ),
    ] = "1.0",
    seconds: Annotated[
        float, typer.Option(help="CPU seconds for finding a violation, and for finding a proof.", min=0.001)
    ] = 2.0,
    constrained: Constrained = True,
    no_code: NoCode = False,
) -> None:
    """Write laws on a network as a suite: each instance asks whether a case violates the law.

    If interrupted, the same command continues where it stopped.
    """
    if model is None:
        one_thread()  # the domain may train its own model
    import dokimos
    from dokimos.cli.law_verify import expect_rows, shares
    from dokimos.cli.output import progress_bar, say
    from dokimos.laws.proving.results import VerifySettings

    expect_rows(rows, tolerance, free)
    with progress_bar("exporting") as progress:
        exported = dokimos.export_law(
            laws,
            out=out,
            model=model,
            domain=domain,
            rows=rows,
            tolerances=shares("1%" if tolerance is None else tolerance),
            free=[each.strip() for each in free.split(",") if each.strip()],
            vnnlib=vnnlib,
            settings=VerifySettings(seconds=seconds, constrained=constrained, allow_code=not no_code),
            progress=progress,
        )
    _list("left out", exported.left_out)
    _list("open", exported.open_ones)
    count = len(exported.suite.entries)
    typer.echo(
        f"{out}: {count:,} instance{'s' * (count != 1)}, {exported.sat:,} labelled sat by a violation, "
        f"{exported.unsat:,} unsat by a proof"
    )
    if exported.sat + exported.unsat < count:
        typer.echo(f"find the other labels with: dokimos label {out}")
    if exported.is_interrupted:
        so_far = f"{out} has the instances up to here"
        say(f"dokimos: interrupted; {so_far}; run the same command again to continue.")
        raise SystemExit(INTERRUPTED)


def _list(what: str, given: Sequence[str]) -> None:
    for each in given[:_NAMED]:
        typer.echo(f"{what}: {each}")
    if len(given) > _NAMED:
        typer.echo(f"{what}: {len(given) - _NAMED:,} more")
