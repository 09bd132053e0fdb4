"""What is computed again from the files alone: `dokimos check`, `label` and `replay`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dokimos.cli import echo
from dokimos.cli.options import DomainOption, Jobs, PluginProofs, suite_names
from dokimos.cli.output import Json, printout

if TYPE_CHECKING:
    from rich.table import Table

    from dokimos.api.networks import NodeComparison, Replay, ReplayedPoint
    from dokimos.api.suites import CheckedEntry, LabelOutcome


def check(
    suite: Annotated[
        list[str],
        typer.Argument(
            help="A suite's folder, the name of a shipped suite, or proofs of laws (.json).",
            autocompletion=suite_names,
        ),
    ],
    jobs: Jobs = None,
    core_only: Annotated[
        bool,
        typer.Option("--core-only", help="Load only the trusted core; do not generate a missing suite."),
    ] = False,
    plugin_proofs: PluginProofs = False,
    model: Annotated[
        str | None, typer.Option(help="Of proofs of laws: the model to use instead of the recorded one.")
    ] = None,
    domain: DomainOption = None,
    allow_code: Annotated[
        bool, typer.Option("--allow-code", help="Of proofs of laws: run the Python code that they name.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Prove every label of a suite, or laws, again, from the files alone. Exit code 1 if one is not proven.

    If a file cannot be read the code is 2, and 3 if Dokimos itself failed on one; the others are listed all
    the same. Instances without a label are counted separately; `dokimos label` looks for labels for them.
    Each network is also cross-checked with onnxruntime at a few points, unless --core-only is given.
    Proofs of laws are the files that `dokimos law verify --out` wrote.
    """
    import dokimos
    from dokimos.api.arguments import expect_suites
    from dokimos.cli.output import cross_check_lines, progress_bar, say, starting_over
    from dokimos.core.errors import InputError

    if all(name.endswith(".json") for name in suite):
        with printout("check", as_json) as out:
            proofs = dokimos.check_proofs(suite, model=model, domain=domain, allow_code=allow_code)
            out.table("proofs", proofs)
            for proof in proofs:
                shown = f"holds: {proof.law} for {proof.over}, {proof.semantics}"
                out.line(
                    f"{proof.path}: {shown if proof.problem is None else f'does not hold: {proof.problem}'}"
                )
            if any(proof.problem is not None for proof in proofs):
                raise typer.Exit(1)
        return
    if len(suite) > 1:
        raise InputError("Give one suite, or proofs of laws, whose names end in .json.")
    expect_suites(suite)
    with starting_over(), progress_bar("checking") as show:
        checked = dokimos.check(
            suite[0], jobs=jobs, core_only=core_only, plugin_proofs=plugin_proofs, progress=show
        )
    for one in sorted(checked.failed, key=lambda failed: failed.name):
        say(f"{one.name}: not proven: {one.problem}")
    with printout("check", as_json) as out:
        out.table("labels", checked.entries, _table(checked.entries) if checked.entries else None)
        if checked.unlabelled:
            count = len(checked.unlabelled)
            which = (
                f"{count} instance{'' if count == 1 else 's'} without a label" if checked.entries else ""
            )
            out.line(
                which or f"no labels: none of {count} instances has a truth file, so nothing was checked"
            )
        for line in cross_check_lines(checked.cross_checks):
            out.line(line)
        if checked.failed:
            unreadable = any(one.is_unreadable for one in checked.failed)
            raise typer.Exit(3 if any(one.is_fault for one in checked.failed) else 2 if unreadable else 1)


def _table(checked: Sequence[CheckedEntry]) -> Table:
    from dokimos.reports.terminal_tables import grid

    proven = [one for one in checked if one.is_proven]
    rows: dict[tuple[str, str, str], list[CheckedEntry]] = {}
    for one in proven:
        rows.setdefault((one.family, one.label, one.kind), []).append(one)
    # What most suites do not have: other semantics, and another answer in float32 than over the reals.
    others = list(dict.fromkeys(name for one in proven for name in one.answers if name not in _USUAL))
    if any(one.answers.get("float32", one.label) != one.label for one in proven):
        others.insert(0, "float32")
    cells = []
    for key, ones in sorted(rows.items()):
        safe = [one.float32_margin for one in ones if one.float32_margin is not None]
        least = f"{min(safe):.3g}" if safe else "-"
        cells.append((*key, len(ones), len(safe), least, *(_answers(ones, name) for name in others)))
    counts = ("proven (reals)", "proven (float32)", "least float32 margin", *map(_as_title, others))
    title = f"{len(proven)} of {len(checked)} labels proven"
    return grid(("family", "label", "proof", *counts), cells, title=title, right=counts)


_USUAL = ("real", "float32")


def _as_title(semantics: str) -> str:
    return f"{semantics}: sat, unsat"


def _answers(ones: Sequence[CheckedEntry], semantics: str) -> str:
    found = Counter(one.answers.get(semantics) for one in ones)
    return f"{found['sat']}, {found['unsat']}"


# `dokimos label`: labels, with proofs, for instances that have none


def label(
    suite: Annotated[
        str, typer.Argument(help="A suite's folder, or a network (.onnx).", autocompletion=suite_names)
    ],
    property: Annotated[
        Path | None, typer.Argument(help="The property (.vnnlib), if a network is given.")
    ] = None,
    budget: Annotated[
        str, typer.Option(help="The CPU time for each instance, such as 60s, 5m or 1h.")
    ] = "60s",
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Make a suite from the network and its property in this folder (default: in "
            "Dokimos' home).",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="How many instances at a time.", min=1)] = 1,
    as_json: Json = False,
) -> None:
    """Find labels for instances that have none: attacks, then every proof that applies.

    A label is written to truth/ once its proof has been checked. If interrupted, the same command
    continues where it stopped. Exit code 2 if a file cannot be read.
    """
    import dokimos
    from dokimos.cli.output import progress_bar, say
    from dokimos.core.readable import parse_seconds

    with progress_bar("labelling") as show:
        found = dokimos.label(
            suite, property, budget_seconds=parse_seconds(budget), out=folder, jobs=jobs, progress=show
        )
    with printout("label", as_json) as out:
        out.table("instances", found.outcomes, _label_table(found.labelled) if found.labelled else None)
        for outcome in found.open:
            if outcome.is_unreadable or outcome.is_fault:
                say(f"{outcome.name}: {outcome.reason}")
            else:
                out.line(_open_in_words(outcome))
        counts = Counter(outcome.label or "open" for outcome in found.outcomes)
        parts = ", ".join(f"{counts[word]} {word}" for word in ("sat", "unsat", "open") if counts[word])
        what = "1 instance" if len(found.outcomes) == 1 else f"{len(found.outcomes)} instances"
        out.line(f"{found.suite.folder}: {what}: {parts}")
        if any(outcome.is_unreadable or outcome.is_fault for outcome in found.outcomes):
            raise typer.Exit(3 if any(outcome.is_fault for outcome in found.outcomes) else 2)


def _label_table(labelled: Sequence[LabelOutcome]) -> Table:

    from dokimos.reports.terminal_tables import grid

    rows = [
        (one.name, one.label, one.kind, one.by or "already labelled", _short(one.margin, "-"))
        for one in labelled
    ]
    return grid(("instance", "label", "proof", "found by", "margin"), rows, right=("margin",))


def _short(number: float | None, otherwise: str) -> str:
    return otherwise if number is None else f"{number:.3g}"


def _open_in_words(outcome: LabelOutcome) -> str:
    """Why an instance is open, and how close the search came to either answer."""
    known = (("least margin found", outcome.nearest), ("proven to be at least", outcome.bound))
    margins = ", ".join(f"{words} {number:.3g}" for words, number in known if number is not None)
    return f"{outcome.name}: open{f' ({margins})' if margins else ''}: {outcome.reason}"


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
