"""`dokimos law verify` and `dokimos law export`: laws decided for every case, by us or by any verifier."""

from __future__ import annotations

import re
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import echo, in_options
from dokimos.cli.options import Constrained, DomainOption, Free, Laws, NoCode

if TYPE_CHECKING:
    from dokimos.api.law_proofs import (
        AskedLaw,
        LawDecision,
        RowsDecision,
        VerifiedLaw,
        VerifiedRows,
        VerifySettings,
    )
    from dokimos.core.progress import ProgressUpdate


# `dokimos law verify`: decide laws for every case


def verify(
    laws: Laws,
    model: Annotated[
        str | None,
        typer.Option(help="The model: NAME.onnx, NAME.json or NAME.pkl (default: the domain's own)."),
    ] = None,
    domain: DomainOption = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            help="CPU seconds for each law (default: 60); with --rows, for each row (default: 10).",
            min=0.001,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the random draws.", min=0)] = 0,
    constrained: Constrained = True,
    rows: Annotated[
        int | None, typer.Option(help="Decide around this many rows of the domain's data.", min=1)
    ] = None,
    tolerance: Annotated[
        str | None,
        typer.Option(
            help="How far numbers of a row move, as a share of their range: 1%,2%,5% or 1/255 (1% unless "
            "given)."
        ),
    ] = None,
    free: Free = "",
    verifier: Annotated[
        str | None, typer.Option(help="Ask this verifier instead; what it proves is not checked.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="A folder for proofs and violations.")] = None,
    no_code: NoCode = False,
) -> None:
    """Decide laws for every case: proven, violated, or open. Exit code 0 if all are proven, else 1.

    If interrupted with --out, the same command continues where it stopped.
    """
    from dokimos.api.law_proofs import VerifySettings
    from dokimos.cli.output import starting_over

    expect_rows(rows, tolerance, free)
    limit = seconds if seconds is not None else 60.0 if rows is None or verifier is not None else 10.0
    settings = VerifySettings(seconds=limit, seed=seed, constrained=constrained, allow_code=not no_code)
    continues = out is not None and verifier is None
    with nullcontext() if continues else starting_over():
        if verifier is not None:
            _ask(laws, verifier, model, domain, settings, rows, tolerance, free, out)
        elif rows is not None:
            _verify_rows(laws, model, domain, settings, rows, tolerance, free, out)
        else:
            _verify(laws, model, domain, settings, out)


def _verify(
    laws: list[Path], model: str | None, domain: str | None, settings: VerifySettings, out: Path | None
) -> None:
    import dokimos
    from dokimos.api.law_proofs import LawAnswer

    def progress(update: ProgressUpdate[VerifiedLaw]) -> None:
        _show(update.item)

    verified = dokimos.verify_law(
        laws, model=model, domain=domain, settings=settings, out=out, progress=progress
    )
    answers = [one.decision.answer for one in verified]
    if len(answers) > 1:
        counts = [(answers.count(each), each.value) for each in LawAnswer]
        echo(f"{len(answers)} laws: " + ", ".join(f"{n} {word}" for n, word in counts if n))
    if any(each is not LawAnswer.PROVEN for each in answers):
        raise typer.Exit(1)


def _ask(
    laws: list[Path],
    verifier: str,
    model: str | None,
    domain: str | None,
    settings: VerifySettings,
    rows: int | None,
    tolerance: str | None,
    free: str,
    out: Path | None,
) -> None:
    import dokimos
    from dokimos.api.law_proofs import LawAnswer
    from dokimos.core.errors import InputError

    if out is not None:
        raise InputError("--out: what a verifier says comes with no proof to write; leave out --out.")
    found = dokimos.ask_law(
        laws,
        verifier,
        model=model,
        domain=domain,
        rows=rows,
        tolerances=shares("1%" if tolerance is None else tolerance),
        free=[each.strip() for each in free.split(",") if each.strip()],
        settings=settings,
        progress=lambda update: _show_asked(update.item),
    )
    if any(one.answer is not LawAnswer.PROVEN for one in found):
        raise typer.Exit(1)


def _show_asked(one: AskedLaw) -> None:
    from dokimos.api.law_proofs import LawAnswer

    took = f"{one.seconds:.1f} s"
    match one.answer:
        case LawAnswer.PROVEN:
            echo(f"{one.place}: proven by {one.verifier}, not checked by Dokimos ({took})")
        case LawAnswer.VIOLATED:
            echo(f"{one.place}: violated, found by {one.verifier} ({took})\n  - {one.words}")
        case _:
            echo(f"{one.place}: open: {one.verifier}: {one.reason} ({took})")


def _verify_rows(
    laws: list[Path],
    model: str | None,
    domain: str | None,
    settings: VerifySettings,
    rows: int,
    tolerance: str | None,
    free: str,
    out: Path | None,
) -> None:
    import dokimos
    from dokimos.api.law_proofs import rows_words

    def progress(update: ProgressUpdate[VerifiedRows | None]) -> None:
        if update.item is None:
            echo(f"{update.note}: {update.done} of {update.total} rows", err=True)
            return
        echo(rows_words(update.item.decision))
        if update.item.saved is not None:
            command = _check(update.item.decision)
            echo(f"  saved in {update.item.saved}: {command} {quote(str(update.item.saved))}")

    verified = dokimos.verify_law_rows(
        laws,
        rows=rows,
        tolerances=None if tolerance is None else shares(tolerance),
        free=[each.strip() for each in free.split(",") if each.strip()],
        model=model,
        domain=domain,
        settings=settings,
        out=out,
        progress=progress,
    )
    if not all(one.decision.is_proven for one in verified):
        raise typer.Exit(1)


def expect_rows(rows: int | None, tolerance: str | None, free: str) -> None:
    """Raise InputError if an option about rows is given without rows."""
    from dokimos.core.errors import InputError

    given = "--tolerance" if tolerance is not None else "--free" if free else ""
    if given and rows is None:
        raise InputError(f"{given} is about rows: say around how many with --rows.")


def shares(text: str) -> list[Fraction]:
    """Shares such as "1%,2.5%,1/255" as fractions. Raises InputError."""
    from dokimos.core.errors import InputError

    found = []
    for each in text.split(","):
        match = re.fullmatch(
            r"\s*(?:([0-9]{1,3}(?:\.[0-9]{1,6})?)\s*%|([0-9]{1,6}/[1-9][0-9]{0,5}))\s*", each
        )
        if match is None:
            raise InputError(f"--tolerance: {each.strip()!r} is not a percentage; give 1%, or 1%,2%,5%.")
        found.append(Fraction(match[1]) / 100 if match[1] else Fraction(match[2]))
    return found


def _show(verified: VerifiedLaw) -> None:
    from dokimos.api.law_proofs import LawAnswer, decision_words

    echo(in_options(decision_words(verified.decision)))
    if verified.saved is not None:
        is_proven = verified.decision.answer is LawAnswer.PROVEN
        command = _check(verified.decision) if is_proven else "dokimos law replay --allow-code"
        echo(f"  saved in {verified.saved}: {command} {quote(str(verified.saved))}")


def _check(decision: LawDecision | RowsDecision) -> str:
    """The command that checks what was saved again, up to the name of the file."""
    from dokimos.api.law_proofs import is_code

    own = (decision.domain.place or "").endswith(".py") or is_code(decision.model.name)
    return "dokimos check" + " --allow-code" * own


# `dokimos monotone`: what a model rises or falls with


def monotone(
    model: Annotated[str, typer.Argument(help="A file of the model, or FILE.py:NAME.")],
    data: Annotated[Path, typer.Option(help="A CSV file: its ranges are the set of records.")],
    feature: Annotated[
        list[str] | None,
        typer.Option(help="NAME=1 (rises) or NAME=-1 (falls); by default what the model was fitted with."),
    ] = None,
    target: Annotated[str | None, typer.Option(help="A column that is not an input of the model.")] = None,
    seconds: Annotated[float, typer.Option(help="CPU seconds for each feature.", min=0.001)] = 60.0,
    no_code: NoCode = False,
) -> None:
    """Prove that a model rises or falls with features. Exit code 0 if all is proven, else 1.

    As with `law verify`, what is not decided counts as not proven.
    """
    import dokimos
    from dokimos.api.law_proofs import VerifySettings
    from dokimos.core.errors import InputError

    asked: dict[str, int] = {}
    for each in feature or ():
        name, _, sign = each.rpartition("=")
        if sign.lstrip("+") not in ("1", "-1") or not name:
            raise InputError(
                f"--feature {each}: give NAME=1 if the model should rise, NAME=-1 if it should fall."
            )
        asked[name] = int(sign)
    found = dokimos.monotone(
        model,
        data,
        asked or None,
        target=target,
        settings=VerifySettings(seconds=seconds, allow_code=not no_code),
        progress=lambda update: echo(in_options(update.note)),
    )
    if not found.is_proven:
        if not found.is_violated:
            echo("nothing was found wrong, but not everything is proven: exit code 1, as for law verify")
        raise typer.Exit(1)


# `dokimos law export`: laws as instances for any verifier


#: How many laws and rows without an instance are listed.
_NAMED = 5


def export(
    laws: Laws,
    out: Annotated[Path, typer.Option(help="A new folder for the suite.")],
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
    constrained: Constrained = True,
    no_code: NoCode = False,
) -> None:
    """Write laws on a network as a suite: each instance asks whether a case violates the law."""
    import dokimos
    from dokimos.api.law_proofs import VerifySettings
    from dokimos.cli.output import progress_bar

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
            settings=VerifySettings(constrained=constrained, allow_code=not no_code),
            progress=progress,
        )
    for each in exported.left_out[:_NAMED]:
        echo(f"left out: {each}")
    if len(exported.left_out) > _NAMED:
        echo(f"left out: {len(exported.left_out) - _NAMED:,} more")
    count = len(exported.suite.entries)
    echo(f"{out}: {count:,} instance{'s' * (count != 1)}, written")
    echo(f"find their labels, with proofs, with: dokimos label {quote(str(out))}")
