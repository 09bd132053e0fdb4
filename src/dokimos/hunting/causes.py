"""Why an answer is wrong: what, once made neutral, lets the tool answer correctly.

A control is the reduced question with one thing about it made ordinary: a node left out, an attribute at
its default, weights of ordinary size, no zeros, no point boxes. Its label is proven again. Where the tool
then answers correctly, that thing is needed for the wrong answer, and all such things are its cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import floor, log2, log10

import numpy as np

from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import DokimosError
from dokimos.hunting.asking import Asker, Wrong, crash_key, judged
from dokimos.hunting.file_graph import NoChange
from dokimos.hunting.moves import Move, bypassed, plain_attribute, with_first_constraint
from dokimos.hunting.reduction import nudged, oddities
from dokimos.hunting.specimen import LabelProver, Specimen
from dokimos.judging.verdicts import Verdict
from dokimos.suites.instance import LabelledInstance
from dokimos.verifiers.base import NO_ATTACK, WARM

#: Weights outside of these sizes are not ordinary.
_SMALL, _LARGE = 2.0**-6, 2.0**6
_ORDINARY = frozenset(("Gemm", "MatMul", "Add", "Sub", "Flatten", "Reshape"))


@dataclass(frozen=True)
class Cause:
    """What is needed for a wrong answer, and the form of the smallest question that has it.

    `needed` are the controls that are answered correctly; `margin_size` is the order of magnitude of the
    margin; `node` is the operator of the first one whose bounds exclude the witness, where the tool writes
    its bounds.
    """

    tool: str
    wrong: str
    needed: tuple[str, ...]
    operators: tuple[str, ...]
    margin_size: int
    attack_off: bool
    node: str = ""

    @property
    def key(self) -> str:
        """What distinct causes differ in: the tool, what it says wrongly, and what is needed for it."""
        if self.needed:
            about = ", ".join(self.needed)
        else:
            about = (
                f"the bounds of {self.node}" if self.node else "the operators " + ", ".join(self.operators)
            )
        return f"{self.tool}: {self.wrong}: {about}"

    @property
    def form(self) -> tuple[object, ...]:
        """What tells findings of one cause apart."""
        return self.operators, self.margin_size, self.attack_off, self.node

    @property
    def called(self) -> str:
        """The tool as it was asked."""
        return self.tool + (NO_ATTACK if self.attack_off else "")

    @property
    def in_words(self) -> str:
        """A title."""
        return f"{self.wrong} with {', '.join(self.needed) or ', '.join(self.operators)}"


def tool_name(called: str) -> str:
    """The tool, whether it is warm or has its attack off."""
    return called.removesuffix(WARM).removesuffix(NO_ATTACK).removesuffix(WARM)


def controls(specimen: Specimen) -> Iterator[tuple[str, Move]]:
    """Each thing that may be needed, in words, with the question in which it is neutral."""
    graph = specimen.graph
    for node in graph.nodes:
        for name in sorted(node.attributes):
            yield f"{node.op} {name}", partial(plain_attribute, specimen, node, name)
        if node.op not in _ORDINARY:
            for name in node.inputs:
                if name and name not in graph.constants:
                    yield node.op, partial(bypassed, specimen, node, name)
    sizes = [float(np.abs(v[v != 0]).min()) for _, v in graph.floats() if v.any()]
    if any(size < _SMALL for size in sizes):
        yield "small weights", partial(_of_ordinary_size, specimen, small=True)
    if any(float(np.abs(v).max(initial=0)) > _LARGE for _, v in graph.floats()):
        yield "large weights", partial(_of_ordinary_size, specimen, small=False)
    for oddity in sorted(oddities(specimen) - {"tiny weights"}):
        yield oddity, partial(nudged, specimen, oddity)
    if specimen.text is not None:
        yield "how the property is written", partial(replace, specimen, text=None)
    elif specimen.constraints > 1:
        yield "several constraints", partial(with_first_constraint, specimen)


def _of_ordinary_size(specimen: Specimen, *, small: bool) -> Specimen:
    """Every tensor of weights times a power of two, so that its largest number is about 1."""
    changed = {}
    for name, values in specimen.graph.floats():
        largest = float(np.abs(values).max(initial=0))
        if largest and (largest < _SMALL if small else largest > _LARGE):
            changed[name] = (values * 2.0 ** -floor(log2(largest))).astype(values.dtype)
    if not changed:
        raise NoChange("the weights are of ordinary size")
    return replace(specimen, graph=specimen.graph.with_constants(changed))


def cause_of(
    specimen: Specimen, wrong: Wrong, asker: Asker, prover: LabelProver, margin: Fraction, *, node: str = ""
) -> Cause:
    """The cause of the wrong answer to a reduced question, by its controls."""
    ordinary = _without_oddities(specimen, wrong, asker, prover)
    found = (name for name, move in controls(ordinary) if _is_right_then(move, wrong, asker, prover))
    needed = dict.fromkeys(found)
    called = asker.verifier.name
    return Cause(
        tool=tool_name(called),
        wrong=wrong.in_words,
        needed=tuple(needed),
        operators=specimen.graph.operators,
        margin_size=floor(log10(margin)) if margin > 0 else 0,
        attack_off=NO_ATTACK in called,
        node=node,
    )


def _without_oddities(specimen: Specimen, wrong: Wrong, asker: Asker, prover: LabelProver) -> Specimen:
    """The question with what is odd perturbed, where it stays wrong: another bug must not hide a cause."""
    for oddity in sorted(oddities(specimen)):
        found = _answered(partial(nudged, specimen, oddity), wrong, asker, prover)
        specimen = next((one for one, labelled, record in found if wrong.holds(record, labelled)), specimen)
    return specimen


def _is_right_then(move: Move, wrong: Wrong, asker: Asker, prover: LabelProver) -> bool:
    """Whether the tool is right once this is neutral: with the first threshold whose label is proven."""
    for _, labelled, record in _answered(move, wrong, asker, prover):
        if wrong.crash:
            return not crash_key(record)
        return judged(record, labelled).verdict in (Verdict.CORRECT, Verdict.CLIPPED)
    return False


def _answered(
    move: Move, wrong: Wrong, asker: Asker, prover: LabelProver
) -> Iterator[tuple[Specimen, LabelledInstance, RunRecord]]:
    """The answers to what a move makes, with each threshold for which the label is proven."""
    try:
        changed = move()
        for candidate in [changed] if wrong.crash else prover.variants(changed):
            instance = LabelledInstance(candidate.instance, None)
            labelled = instance if wrong.crash else prover.proven(candidate)
            if labelled is not None:
                yield candidate, labelled, asker.ask(labelled)
    except (NoChange, DokimosError, ValueError, IndexError, KeyError, OverflowError):
        return
