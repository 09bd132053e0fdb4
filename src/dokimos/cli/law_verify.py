"""`dokimos law verify` and `dokimos law recheck`: laws decided for every case, proofs checked again."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import one_thread
from dokimos.cli.law_options import DomainOption, Laws, NoCode

if TYPE_CHECKING:
    from dokimos.api.law_proofs import VerifiedLaw
    from dokimos.api.progress import ProgressUpdate


def verify(
    laws: Laws,
    model: Annotated[
        str | None,
        typer.Option(help="The model: NAME.onnx, NAME.json, NAME.pkl; the domain's own unless given."),
    ] = None,
    domain: DomainOption = None,
    seconds: Annotated[float, typer.Option(help="How long each law may take.", min=0.001)] = 60.0,
    seed: Annotated[int, typer.Option(help="Seeds every draw.", min=0)] = 0,
    constrained: Annotated[
        bool, typer.Option("--constraints/--no-constraints", help="Whether the domain's CONSTRAINTS hold.")
    ] = True,
    out: Annotated[Path | None, typer.Option(help="A folder for proofs and violations.")] = None,
    no_code: NoCode = False,
) -> None:
    """Decide laws for every case: proven, violated, or open. Exit code 0 where all are proven, else 1."""
    if model is None:
        one_thread()  # the domain may train its own
    import dokimos
    from dokimos.laws.proving.results import LawAnswer, VerifySettings

    settings = VerifySettings(seconds=seconds, seed=seed, constrained=constrained, allow_code=not no_code)

    def progress(update: ProgressUpdate[VerifiedLaw]) -> None:
        _show(update.item)

    verified = dokimos.verify_law(
        laws, model=model, domain=domain, settings=settings, out=out, progress=progress
    )
    answers = [one.decision.answer for one in verified]
    if len(answers) > 1:
        counts = [(answers.count(each), each.value) for each in LawAnswer]
        typer.echo(f"{len(answers)} laws: " + ", ".join(f"{n} {word}" for n, word in counts if n))
    if any(each is not LawAnswer.PROVEN for each in answers):
        raise typer.Exit(1)


def _show(verified: VerifiedLaw) -> None:
    from dokimos.laws.proving.results import LawAnswer
    from dokimos.laws.reporting.decision_words import decision_words

    typer.echo(decision_words(verified.decision))
    if verified.saved is not None:
        is_proven = verified.decision.answer is LawAnswer.PROVEN
        command = "recheck" if is_proven else "replay --allow-code"
        typer.echo(f"  saved in {verified.saved}: dokimos law {command} {quote(str(verified.saved))}")


def recheck(
    files: Annotated[list[Path], typer.Argument(help="Proofs that `dokimos law verify --out` wrote.")],
    model: Annotated[str | None, typer.Option(help="The model, if not the recorded one.")] = None,
    domain: DomainOption = None,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Run the Python that the files name.")
    ] = False,
) -> None:
    """Check proofs of laws again, without what found them. Exit code 1 where one does not hold."""
    import dokimos

    checked = dokimos.recheck_law(files, model=model, domain=domain, allow_code=allow_code)
    for one in checked:
        if one.problem is None:
            typer.echo(f"{one.path}: holds: {one.law} for {one.over}, {one.semantics}")
        else:
            typer.echo(f"{one.path}: does not hold: {one.problem}")
    if any(one.problem is not None for one in checked):
        raise typer.Exit(1)
