"""`dokimos show`: everything that is known about one instance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.printout import Json, printout

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.table import Table

    from dokimos.api.showing import ShownInstance
    from dokimos.properties.model import Box, Conjunction

#: How many inputs, disjuncts and boxes are listed.
_INPUTS, _DISJUNCTS, _BOXES = 8, 10, 2


def show(
    instance: Annotated[
        str,
        typer.Argument(
            help="SUITE/INSTANCE, SUITE, the name of an instance in a campaign, or a network (.onnx)."
        ),
    ],
    property: Annotated[
        str | None,
        typer.Argument(
            help="With SUITE, the name of the instance; with a network, the property (.vnnlib)."
        ),
    ] = None,
    campaign: Annotated[
        list[Path] | None,
        typer.Option(help="A campaign's folder, to show each verifier's answer; repeatable."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show everything that is known about one instance.

    Its size and operators, its property in words, its label with proof, margin and witness, its profile,
    and each verifier's answer. Exit code 1 if its label fails its check, or an answer is wrong.
    """
    import dokimos
    from dokimos.core.readable import printable

    shown = dokimos.show(instance, property, campaigns=campaign or ())
    with printout("show", as_json) as out:
        for line in _lines(shown):
            out.line(printable(line))
        out.table("answers", _answer_rows(shown), _answers(shown) if shown.judgements else None)
        if campaign and not shown.judgements:
            out.line(_field("answers", "none in the campaigns that were named"))
        failed = shown.label_check is not None and shown.label_check.standing.value == "failed"
        if failed or any(j.verdict.is_wrong for j in shown.judgements):
            raise typer.Exit(1)


def _field(name: str, words: str) -> str:
    return f"{name:<10} {words}"


def _lines(shown: ShownInstance) -> Iterator[str]:
    entry = shown.entry
    yield f"{entry.name} (family {entry.family}), in {shown.suite.folder}"
    yield from _network(shown)
    yield from _property(shown)
    yield from _label(shown)
    yield from _profile(shown)


def _network(shown: ShownInstance) -> Iterator[str]:
    found = shown.network
    for name, path in shown.networks.items():
        yield _field("network", f"{name} = {path}" if name else str(path))
    if shown.is_lowered:
        yield _field("", f"verifiers get one network for the whole query: {shown.entry.network_path}")
    if found.problem:
        yield _field("", f"not read here: {found.problem}")
    else:
        units = ", ".join(f"{count:,} {op}" for op, count in (found.units or {}).items())
        shapes = f"{_shape(found.input_shape)} -> {_shape(found.output_shape)}"
        work = f"{found.parameters:,} parameters, {found.multiplications:,} multiplications"
        yield _field("size", f"{shapes}, {work}, {units or 'no'} units")
    if found.operators:
        counts = ", ".join(f"{op} {count}" for op, count in found.operators.items())
        yield _field("operators", counts)


def _shape(shape: tuple[int, ...]) -> str:
    from math import prod

    return f"{prod(shape)} ({'×'.join(map(str, shape))})"


def _property(shown: ShownInstance) -> Iterator[str]:
    from dokimos.properties.wording import box_in_words, unsafe_in_words

    asked = shown.asked
    yield _field("property", f"{shown.property_path}, {shown.entry.timeout_seconds:g} s")
    if asked is None:
        yield _field("", f"not read here: {shown.property_problem}")
        return
    by_box: dict[Box, list[Conjunction]] = {}
    for case in asked.cases:
        by_box.setdefault(case.box, []).extend(case.any_of)
    boxes = "" if len(by_box) == 1 else f" in one of {len(by_box)} boxes"
    yield _field("", f"Is there an input{boxes} with")
    for number, (box, any_of) in enumerate(by_box.items()):
        if number == _BOXES:
            yield f"             … and {len(by_box) - _BOXES} more boxes"
            break
        yield from (f"             {line}" for line in box_in_words(box, asked, most=_INPUTS))
        yield _field("", "whose output is unsafe, that is" + (", one of" if len(any_of) > 1 else ""))
        lines = unsafe_in_words(any_of, asked)
        yield from (f"             {line}" for line in lines[:_DISJUNCTS])
        if len(lines) > _DISJUNCTS:
            yield f"             … and {len(lines) - _DISJUNCTS} more"


def _label(shown: ShownInstance) -> Iterator[str]:
    from dokimos.suites.instance import Semantics

    truth, check = shown.truth, shown.label_check
    if truth is None or check is None:
        yield from _no_label(shown)
        return
    failed = f"{check.standing.value}: {check.problem}"
    stands = "proven again from the files" if check.is_proven else failed
    yield _field("label", f"{truth.label.value}, {stands}")
    yield _field("proof", truth.certificate.kind)
    for semantics in Semantics:
        claim = truth.claim(semantics)
        number = "" if claim.margin is None else f", margin {float(claim.margin):.6g}"
        words = f"proven{number}" if claim.proven else "not proven"
        where = {Semantics.REAL: "over the reals", Semantics.FLOAT32: "in float32"}[semantics]
        yield _field("margin" if semantics is Semantics.REAL else "", f"{where}: {words}")
    if truth.witness is not None:
        yield _field("witness", _point(truth.witness))


def _no_label(shown: ShownInstance) -> Iterator[str]:
    kept = shown.kept_open
    settling = next((j for j in shown.judgements if j.label is not None), None)
    if settling is not None and settling.label is not None:
        yield _field("label", f"no truth file; {settling.label.value} by {_settled_by(shown)}")
        return
    if kept is None:
        yield _field("label", "none; `dokimos label` looks for one")
        return
    nearest = "unknown" if kept.nearest is None else f"{kept.nearest:.3g}"
    bound = "unknown" if kept.bound is None else f"{kept.bound:.3g}"
    yield _field(
        "label",
        f"open after {kept.budget_seconds:g} s: least margin found {nearest}, proven lower bound {bound}",
    )
    yield _field("", kept.reason)


def _settled_by(shown: ShownInstance) -> str:
    """Which verifier's witness or certificate settles an instance without a truth file."""
    right = [j for j in shown.judgements if j.label is not None and not j.verdict.is_wrong]
    right = [j for j in right if j.label is not None and j.record.answer.value == j.label.value]
    names = ", ".join(dict.fromkeys(j.record.verifier for j in right))
    kind = next(j.certificate for j in shown.judgements if j.label is not None)
    return f"{kind} ({names})" if names else f"{kind}"


def _point(point: tuple[Fraction, ...]) -> str:
    from dokimos.core.readable import exact_number

    shown = ", ".join(f"X_{i} = {exact_number(x).short}" for i, x in enumerate(point[:_INPUTS]))
    return shown + (f", … ({len(point) - _INPUTS} more)" if len(point) > _INPUTS else "")


def _profile(shown: ShownInstance) -> Iterator[str]:
    from dokimos.cli.profile_command import shown as measured
    from dokimos.difficulty.components import symbol

    if shown.profile is None:
        yield _field("profile", "none; `dokimos profile` measures one")
        return
    found = {**shown.profile.components, **shown.profile.extras}
    yield _field("profile", ", ".join(f"{symbol(name)} {measured(one)}" for name, one in found.items()))


def _answer_rows(shown: ShownInstance) -> Iterator[dict[str, object]]:
    for one in shown.judgements:
        run = one.record
        yield {
            "verifier": run.verifier,
            "version": run.verifier_version,
            "answer": run.answer,
            "verdict": one.verdict,
            "wall_seconds": run.wall_seconds,
            "reason": one.reason,
        }


def _answers(shown: ShownInstance) -> Table:
    from rich.table import Table
    from rich.text import Text

    from dokimos.core.readable import printable, seconds

    table = Table(title="answers", title_justify="left")
    for column in ("verifier", "answer", "verdict"):
        table.add_column(column, overflow="fold")
    table.add_column("seconds", justify="right")
    table.add_column("why", overflow="fold")
    for one in shown.judgements:
        run = one.record
        verdict = "unchecked" if one.verdict.is_unchecked else one.verdict.value
        name = f"{run.verifier} {run.verifier_version}"
        cells = (name, run.answer.value, verdict, seconds(run.wall_seconds), printable(one.reason))
        table.add_row(*(Text(cell) for cell in cells))
    return table
