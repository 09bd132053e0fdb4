"""`dokimos show`: everything that is known about one instance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.output import Json, printout
from dokimos.cli.streams import echo

if TYPE_CHECKING:
    from fractions import Fraction

    from rich.table import Table

    from dokimos.api.networks import Box, Conjunction, NodeComparison, Replay, ReplayedPoint, ShownInstance


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
    from dokimos.api.networks import box_in_words, unsafe_in_words

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
    from dokimos.api.networks import Semantics

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
    from dokimos.api.networks import symbol
    from dokimos.cli.profile_command import shown as measured

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


# `dokimos replay`: what happens at one point, exactly and in onnxruntime


#: So many characters of an exact number are shown.
_DIGITS = 24


def replay(
    network: Annotated[Path, typer.Argument(help="The ONNX file, plain or gzipped.")],
    property: Annotated[Path, typer.Argument(help="The VNN-LIB file, plain or gzipped.")],
    point: Annotated[
        list[str],
        typer.Argument(
            help="A file with a VNN-COMP witness or with numbers, or the numbers themselves, "
            "separated by commas or blanks."
        ),
    ],
) -> None:
    """Evaluate a network at a point, exactly and in onnxruntime, and check it against a property.

    Says whether the point is in the box, whether it violates the property and by what margin, and names the
    first node at which onnxruntime and the exact value differ by more than rounding explains. Exit code 1
    if the point violates the property, exactly or in onnxruntime, or if the two differ; otherwise 0.
    """
    import dokimos

    found = dokimos.replay(network, property, point)
    for line in _replay_lines(found):
        echo(line)
    if found.violates or found.parts:
        raise typer.Exit(1)


def _replay_lines(found: ReplayedPoint) -> Iterator[str]:
    from dokimos.reports.sections.wrong_answers import replay_row

    replay, row = found.replay, replay_row(found.replay)
    yield "in the box" if row.in_box else f"outside the box by {row.outside_by.short}"
    yield f"exactly: {_exactly(replay)}" + (
        "" if row.violation is None else f", margin {row.violation.short}"
    )
    yield f"in {row.runtime}: {_in_runtime(found)}"
    for output in row.outputs:
        exact = "-" if output.exact is None else _to_the_digit(output.exact.full)
        runtime = "-" if output.onnxruntime is None else output.onnxruntime.full
        yield f"  Y_{output.index} = {exact} exactly, {runtime} in {row.runtime}"
    if row.outputs_left_off:
        yield f"  … and {row.outputs_left_off} more outputs"
    yield _node_line(found.nodes)


def _to_the_digit(full: str) -> str:
    """A number that is called exact: all of its digits, or the first and a mark that there are more."""
    digits, mark, power = full.removesuffix("…").partition("e")
    return full if len(digits) <= _DIGITS or "±" in full else f"{digits[:_DIGITS]}…{mark}{power}"


def _exactly(replay: Replay) -> str:
    if not replay.is_decided:
        return "whether it violates is undecided at every precision tried"
    if not replay.in_box:
        return "no violation, since it is outside the box"
    return "it violates the property" if replay.violates_exactly else "it does not violate the property"


def _in_runtime(found: ReplayedPoint) -> str:
    from dokimos.api.networks import NO_RUNTIME

    replay, near = found.replay, found.in_floats
    if replay.runtime == NO_RUNTIME:
        return "not evaluated: neither onnxruntime nor ONNX's reference evaluator runs the network"
    if near is None:
        return f"not evaluated: the point is outside the range of {replay.float_type}"
    said = "it violates" if near.violates_in_onnxruntime else "it does not violate"
    if replay.witness_in_float32:
        return f"{said} the property"
    where = "in the box" if near.in_box else "outside the box"
    return f"{said} the property at the nearest {replay.float_type} point, which is {where}"


def _node_line(nodes: NodeComparison) -> str:
    if nodes.remark:
        return f"not compared node by node: {nodes.remark}"
    first = nodes.first
    if first is None:
        return f"{nodes.compared} of {nodes.nodes} nodes compared: rounding explains every difference"
    name = f" {first.node!r}" if first.node else ""
    place = f"{first.tensor}[{', '.join(map(str, first.index))}]"
    return (
        f"they first differ at node {first.position + 1} of {nodes.nodes}, {first.op}{name}: {place} is "
        f"{first.computed!r} in {nodes.runtime} and {first.exact!r} exactly, while rounding explains "
        f"at most {first.rounding:.3g}"
    )
