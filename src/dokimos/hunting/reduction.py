"""Greedy reduction: every move is proven again, and asked again; time-outs and errors are no progress.

Then why the answer is wrong. A control is the reduced question with one thing about it made ordinary: a
node left out, an attribute at its default, weights of ordinary size, no zeros, no point boxes. Its label is
proven again. Where the tool then answers correctly, that thing is needed for the wrong answer, and all such
things are its cause.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import islice
from math import floor, inf, log2, log10

import numpy as np

from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import DokimosError
from dokimos.hunting.asking import Asker, Wrong, crash_key, judged
from dokimos.hunting.file_graph import NoChange
from dokimos.hunting.moves import PASSES, Move, Moves, bypassed, plain_attribute, with_first_constraint
from dokimos.hunting.specimen import LabelProver, Specimen
from dokimos.judging.probes import make_probe
from dokimos.judging.verdicts import Verdict
from dokimos.suites.answers import Answer
from dokimos.suites.instance import LabelledInstance
from dokimos.suites.vnnlib.model import Box
from dokimos.verifiers.base import NO_ATTACK, WARM

#: A weight, or a side of a box, that is not 0 and smaller than this is odd.
TINY = 1e-4
#: By how much what is odd is perturbed.
_NUDGE = Fraction(1, 64)


@dataclass(frozen=True)
class ReductionStep:
    """Progress: how small the question is now, and how often the tool was asked."""

    stage: str
    numbers: int
    nodes: int
    inputs: int
    asked: int


class Reducer:
    """Makes one specimen smaller while a tool is wrong about it in the same way."""

    def __init__(
        self,
        asker: Asker,
        wrong: Wrong,
        prover: LabelProver,
        seen: Callable[[ReductionStep], None],
        *,
        most_seconds: float = inf,
    ) -> None:
        self._begun, self._most_seconds = time.process_time(), most_seconds
        self._asker, self._wrong, self._prover, self._seen = asker, wrong, prover, seen
        self._probe: Answer | None = None
        #: What is odd at the start, and needed there for the wrong answer.
        self._needed: set[str] = set()

    @property
    def _is_out_of_time(self) -> bool:
        """Whether the CPU time is used up, of this process and of the tool."""
        return time.process_time() - self._begun + self._asker.cpu_seconds > self._most_seconds

    def is_wrong(self, specimen: Specimen) -> LabelledInstance | None:
        """The instance with its proof if the tool is wrong about it; None otherwise."""
        if self._wrong.crash:
            labelled = LabelledInstance(specimen.instance, None)
        elif (proven := self._prover.proven(specimen)) is None:
            return None
        else:
            labelled = proven
        record = self._asker.ask(labelled)
        return labelled if self._wrong.holds(record, labelled) else None

    def run(self, specimen: Specimen) -> Specimen:
        """The smallest that was found, by all passes in turn until none makes it smaller."""
        self._probe = self._probed(specimen)
        self._needed = {each for each in oddities(specimen) if not self._stays_wrong(specimen, each)}
        before = None
        while before != specimen.cost:
            before = specimen.cost
            for make in PASSES:
                specimen = self._passed(specimen, make)
        return specimen

    def _passed(self, specimen: Specimen, make: Callable[[Specimen], Moves]) -> Specimen:
        """One kind of moves until none of them helps; after one that does, with those that follow it."""
        start = 0
        while True:
            found = self._first(specimen, make, start) or (
                self._first(specimen, make, 0, start) if start else None
            )
            if found is None:
                return specimen
            start, specimen = found
            step = (specimen.numbers, len(specimen.graph.nodes), specimen.graph.input_size)
            self._seen(ReductionStep(make.__name__.replace("_", " "), *step, self._asker.asked))

    def _first(
        self, specimen: Specimen, make: Callable[[Specimen], Moves], start: int, end: int | None = None
    ) -> tuple[int, Specimen] | None:
        """The first move from `start` on that helps, whatever order several threads try them in."""
        moves = enumerate(make(specimen))
        chosen = islice(moves, start, end)
        jobs = self._asker.settings.jobs
        if jobs == 1:
            for number, move in chosen:
                if self._is_out_of_time:
                    return None
                if (smaller := self._tried(specimen, move)) is not None:
                    return number, smaller
            return None
        with ThreadPoolExecutor(jobs) as pool:
            while not self._is_out_of_time and (batch := list(islice(chosen, jobs))):
                results = pool.map(lambda each: self._tried(specimen, each[1]), batch)
                for (number, _), smaller in zip(batch, results, strict=True):
                    if smaller is not None:
                        return number, smaller
        return None

    def _tried(self, specimen: Specimen, move: Move) -> Specimen | None:
        """What a move makes, if the tool is wrong about it and it has not become another question."""
        for candidate in self._candidates(move):
            try:
                is_smaller = candidate.cost < specimen.cost
                if is_smaller and self.is_wrong(candidate) and self._is_same(candidate):
                    return candidate
            except (NoChange, DokimosError, ValueError, OverflowError):
                continue
        return None

    def _candidates(self, move: Move) -> Iterator[Specimen]:
        try:
            changed = move()
            if self._wrong.crash:
                yield changed
            else:
                yield from self._prover.variants(changed)
        except (NoChange, DokimosError, ValueError, IndexError, KeyError, OverflowError):
            return

    def _is_same(self, smaller: Specimen) -> bool:
        """Whether the probe is answered as at the start, and nothing odd is needed that was not needed."""
        odd = sorted(oddities(smaller) - self._needed)
        if not all(self._stays_wrong(smaller, each) for each in odd):
            return False
        return self._probe is None or self._probed(smaller) == self._probe

    def _stays_wrong(self, specimen: Specimen, oddity: str) -> bool:
        """Whether the tool is still wrong once what is odd is perturbed."""
        return any(map(self.is_wrong, self._candidates(partial(nudged, specimen, oddity))))

    def _probed(self, specimen: Specimen) -> Answer | None:
        """The answer where every output is unsafe, which is `sat`: whether the input set is lost."""
        if self._wrong.crash or specimen.witness is None:
            return None
        try:
            answer = self._asker.ask(make_probe(specimen.instance)).answer
        except DokimosError:
            return None
        return Answer.UNSAT if answer is Answer.UNSAT else Answer.SAT


def oddities(specimen: Specimen) -> set[str]:
    """What may be another tool's bug of its own: zero weights, point boxes, equal bounds, tiny numbers."""
    found = set()
    weights = [values for _, values in specimen.graph.floats()]
    if any((values == 0).any() for values in weights):
        found.add("zero weights")
    if any(((values != 0) & (np.abs(values) < TINY)).any() for values in weights):
        found.add("tiny weights")
    for case in specimen.asked.cases:
        widths = [b - a for a, b in zip(case.box.lower, case.box.upper, strict=True)]
        if not all(widths):
            found.add("point boxes")
        if any(0 < width < TINY for width in widths):
            found.add("tiny boxes")
    return found


def nudged(specimen: Specimen, oddity: str) -> Specimen:
    """The specimen with what is odd perturbed."""
    if oddity.endswith("weights"):
        changed = {}
        for name, values in specimen.graph.floats():
            odd = values == 0 if oddity == "zero weights" else (values != 0) & (np.abs(values) < TINY)
            size = max(float(np.abs(values).max(initial=0)) * float(_NUDGE), 10 * TINY)
            near = np.where(values < 0, -1, 1) * (size if oddity == "zero weights" else 2 * TINY)
            changed[name] = np.where(odd, near, values).astype(values.dtype)
        return replace(specimen, graph=specimen.graph.with_constants(changed))
    cases = tuple(replace(case, box=_wider(case.box)) for case in specimen.asked.cases)
    return replace(specimen, asked=replace(specimen.asked, cases=cases), text=None)


def _wider(box: Box) -> Box:
    ends = [
        (a - _NUDGE, b + _NUDGE) if b - a < TINY else (a, b)
        for a, b in zip(box.lower, box.upper, strict=True)
    ]
    return Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))


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
