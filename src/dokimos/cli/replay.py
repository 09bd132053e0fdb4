"""`dokimos replay`: what happens at one point, exactly and in onnxruntime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dokimos.api.replaying import ReplayedPoint
    from dokimos.crosscheck.node_comparison import NodeComparison
    from dokimos.judging.verdicts import Replay

#: A point may begin with a minus sign, and must not be taken for an option then.
CONTEXT = {"ignore_unknown_options": True}


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
    for line in _lines(found):
        typer.echo(line)
    if found.violates or found.parts:
        raise typer.Exit(1)


def _lines(found: ReplayedPoint) -> Iterator[str]:
    from dokimos.reports.sections.wrong_answers import replay_row

    replay, row = found.replay, replay_row(found.replay)
    yield "in the box" if row.in_box else f"outside the box by {row.outside_by.short}"
    yield f"exactly: {_exactly(replay)}" + (
        "" if row.violation is None else f", margin {row.violation.short}"
    )
    yield f"in {row.runtime}: {_in_runtime(found)}"
    for output in row.outputs:
        exact = "-" if output.exact is None else output.exact.short
        runtime = "-" if output.onnxruntime is None else output.onnxruntime.full
        yield f"  Y_{output.index} = {exact} exactly, {runtime} in {row.runtime}"
    if row.outputs_left_off:
        yield f"  … and {row.outputs_left_off} more outputs"
    yield _node_line(found.nodes)


def _exactly(replay: Replay) -> str:
    if not replay.is_decided:
        return "whether it violates is undecided at every precision tried"
    if not replay.in_box:
        return "no violation, since it is outside the box"
    return "it violates the property" if replay.violates_exactly else "it does not violate the property"


def _in_runtime(found: ReplayedPoint) -> str:
    from dokimos.networks.semantics.replay import NO_RUNTIME

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
