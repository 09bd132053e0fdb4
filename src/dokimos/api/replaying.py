"""`replay`: what happens at one point, exactly and in onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.crosscheck.node_comparison import NodeComparison, compare_nodes
from dokimos.judging.verdicts import Replay
from dokimos.judging.witness_replay import Question, replay_witness
from dokimos.judging.written_points import read_point
from dokimos.suites.entry import read_content


@dataclass(frozen=True)
class ReplayedPoint:
    """What happens at one point.

    `replay` has the exact outputs at the point as written. The runtime computes at the nearest point of the
    network's float type: `in_floats` is the replay there, None if a coordinate is outside the range of that
    type. `nodes` compares exact and computed values node by node, at that nearest point.
    """

    replay: Replay
    in_floats: Replay | None
    nodes: NodeComparison

    @property
    def violates(self) -> bool:
        """Whether the point, or the nearest one of the network's type, is in the box and violates the
        property, exactly or (at the latter) in the runtime."""
        near = self.in_floats
        if self.replay.violates_exactly:
            return True
        return near is not None and (near.violates_exactly or near.violates_in_onnxruntime)

    @property
    def parts(self) -> bool:
        """Whether the runtime and the exact values differ by more than rounding explains."""
        return self.nodes.first is not None


def replay(
    network: str | Path,
    property: str | Path,
    point: str | Path | Sequence[str] | Sequence[float | Fraction],
) -> ReplayedPoint:
    """Evaluate a network at one point, exactly and in onnxruntime: `dokimos replay`.

    `point` is a file with a witness in VNN-COMP's format, or with numbers; or a text with the numbers,
    separated by commas or blanks; or the numbers themselves. Nodes are compared one by one, in the order of
    the file: `nodes.first` is the first node whose difference rounding does not explain.

    >>> entry = dokimos.read_suite("tiny").entries[1]
    >>> witness = entry.read_truth().witness
    >>> replayed = dokimos.replay(entry.network_path, entry.property_path, witness)
    >>> replayed.replay.in_box, replayed.violates, replayed.nodes.first
    (True, True, None)
    """
    files = Path(network), Path(property)
    content, asked = (read_content(path) for path in files)
    question = Question(content, asked, str(files[0]), (str(files[0]), str(files[1])))
    written = read_point(point)
    found = replay_witness(question, written)
    if found.as_written is None:
        raise InputError(
            f"{files[0]}: the point has {len(written)} numbers, but the network takes "
            f"{question.network.input_size}; give one for each input, row by row."
        )
    near = found.in_floats
    nodes = (
        NodeComparison(remark=f"the point is outside the range of {found.as_written.float_type}")
        if near is None
        else compare_nodes(content, question.network, found.points[1])
    )
    return ReplayedPoint(found.as_written, near, nodes)
