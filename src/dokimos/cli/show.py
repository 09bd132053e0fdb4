"""`dokimos show` and `dokimos profile`: all that is known about an instance, and what makes it hard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli.options import Jobs, suite_names
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from rich.table import Table

    from dokimos.api.networks import Box, Conjunction, MeasuredProfile, Measurement, ShownInstance
    from dokimos.core.progress import ProgressUpdate

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
        if not claim.proven and semantics not in (Semantics.REAL, Semantics.FLOAT32):
            continue
        number = "" if claim.margin is None else f", margin {float(claim.margin):.6g}"
        answer = f"{claim.own.label.value}, " if claim.own is not None else ""
        words = f"{answer}proven{number}" if claim.proven else "not proven"
        where = "over the reals" if semantics is Semantics.REAL else f"in {semantics.value}"
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
    from dokimos.cli.show import shown as measured

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

    from dokimos.core.readable import printable, seconds
    from dokimos.reports.terminal_tables import grid

    rows = []
    for one in shown.judgements:
        run = one.record
        verdict = "unchecked" if one.verdict.is_unchecked else one.verdict.value
        name = f"{run.verifier} {run.verifier_version}"
        rows.append((name, run.answer.value, verdict, seconds(run.wall_seconds), printable(one.reason)))
    columns = ("verifier", "answer", "verdict", "seconds", "why")
    return grid(columns, rows, title="answers", right=("seconds",))


# `dokimos profile`: what makes instances hard


def profile(
    suite: Annotated[
        str,
        typer.Argument(
            help="A suite's folder, the name of a shipped suite, or a network (.onnx).",
            autocompletion=suite_names,
        ),
    ],
    property: Annotated[
        Path | None, typer.Argument(help="The property (.vnnlib), if a network is given.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for the profiles (default: SUITE/profiles, or Dokimos' home)."),
    ] = None,
    samples: Annotated[int, typer.Option(help="How many points of the input set to sample.", min=2)] = 1000,
    seed: Annotated[int, typer.Option(help="The seed of the samples.", min=0)] = 0,
    tau: Annotated[float, typer.Option(help="The width of the grid of gradients, for A_τ.")] = 1e-3,
    tau_slope: Annotated[
        float, typer.Option(help="How much a smooth unit's slope varies before it is unstable, for U.")
    ] = 0.1,
    eta: Annotated[
        float, typer.Option(help="A small number added to the denominators of G_IBP and d_eff.")
    ] = 1e-12,
    more: Annotated[
        bool,
        typer.Option(
            "--more",
            help="Also measure what takes seconds each: proven margins, linear regions, proof size, …",
        ),
    ] = False,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    """Measure the difficulty profile of each instance. Exit code 2 if one cannot be measured.

    If interrupted, the same command continues where it stopped.
    """
    import dokimos
    from dokimos.api.networks import ProfileSettings
    from dokimos.cli.output import progress_bar, say

    settings = ProfileSettings(samples=samples, seed=seed, tau=tau, tau_slope=tau_slope, eta=eta)
    with progress_bar("profiling") as show:

        def progress(update: ProgressUpdate[MeasuredProfile]) -> None:
            show(replace(update, note=f"{update.item.name}: {_told(update.item)}"))

        profiled = dokimos.profile(
            suite, property, out=out, settings=settings, more=more, jobs=jobs, progress=progress
        )
    with printout("profile", as_json) as said:
        said.table("profiles", map(_row, profiled.outcomes), _table(profiled.outcomes))
        for outcome in profiled.failed:
            say(f"{outcome.name}: {outcome.problem}")
        every = len(profiled.outcomes)
        said.line(f"{profiled.folder}: {every - len(profiled.failed)} of {every} profiles")
        if profiled.failed:
            raise typer.Exit(2)


def _row(outcome: MeasuredProfile) -> dict[str, object]:
    found = outcome.profile
    return {
        "instance": outcome.name,
        "problem": outcome.problem,
        "measurements": None if found is None else {**found.components, **found.extras},
    }


def _told(outcome: MeasuredProfile) -> str:
    from dokimos.api.networks import symbol

    if outcome.profile is None:
        return "FAILED"
    if outcome.was_there:
        return "already measured"
    return ", ".join(f"{symbol(name)} {shown(found)}" for name, found in outcome.profile.components.items())


def shown(found: Measurement) -> str:
    """A measurement in a few characters; its note in full is in the profile's file."""
    note = found.note or ""
    if found.value is None:
        return {"not applicable": "n/a", "infinite": "∞"}.get(note.partition(":")[0], "?")
    whole = found.value.is_integer() and abs(found.value) < 1e9
    number = f"{found.value:.0f}" if whole else f"{found.value:.3g}"
    return f">={number}" if note.startswith(">=") else f"{number}*" if note else number


def _table(outcomes: Sequence[MeasuredProfile]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from dokimos.api.networks import COMPONENTS, EXTRAS, symbol

    title = f"Difficulty profiles of {len(outcomes)} instance{'s' * (len(outcomes) != 1)}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("instance", overflow="fold")
    names = (*COMPONENTS, *(name for name, extra in EXTRAS.items() if extra.in_table))
    for name in names:
        table.add_column(symbol(name), justify="right", overflow="fold")
    for outcome in outcomes:
        if outcome.profile is None:
            table.add_row(outcome.name, "failed")
            continue
        found = {**outcome.profile.components, **outcome.profile.extras}
        table.add_row(outcome.name, *(shown(found[name]) if name in found else "-" for name in names))
    starred = any(
        m.value is not None and m.note and not m.note.startswith(">=")
        for o in outcomes
        if o.profile is not None
        for m in (*o.profile.components.values(), *o.profile.extras.values())
    )
    if starred:
        table.caption = "* see the note in the profile's file"
    return table
