"""Rules about instances: whether runtimes agree on them, how easy they are, and their time limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from dokimos.core.errors import DokimosError
from dokimos.core.plugins import packages_missing
from dokimos.engine.runtimes.cross_check import cross_check
from dokimos.judging.audit.file_rules import LintRule, Remark
from dokimos.judging.audit.subjects import InstancePair, PublishedCategory, PublishedRuns
from dokimos.judging.written_points import WitnessQuality, witness_quality
from dokimos.networks.graph import Network
from dokimos.networks.semantics.exact import Undecided
from dokimos.networks.semantics.interval import enclose
from dokimos.suites.answers import Answer
from dokimos.suites.folder import LintFinding, LintSeverity
from dokimos.suites.instance import Certificate, Instance, Label, Truth, sha256
from dokimos.suites.vnnlib.margins import nearest_point
from dokimos.suites.vnnlib.model import Box, Linear, Property
from dokimos.suites.vnnlib.violation import violation_at

#: What takes about a second: the numbers of points and of descent steps, and the total work.
_POINTS, _STEPS, _MOST_WORK, _MOST_CASES = 50, 20, 2_000_000, 50
#: A time limit is too long if every answer takes less than this fraction of it.
_NEEDED_SHARE = 0.1
#: Outputs that differ by less, relatively, differ by the rounding of their bounds.
_ROUNDING = 1e-9
#: Answers on fewer instances than this may be the same by chance.
_MANY = 8


def _runtime_differs(files: InstancePair) -> Iterator[Remark]:
    if files.both is None:
        return
    content, asked = files.network_file.content, files.property_file.text.encode()
    instance = Instance("network", content, asked)
    no_label = Truth(Label.SAT, {}, Certificate("none"), sha256(content), sha256(asked))
    found = cross_check(instance, no_label)
    if found.contradiction:
        yield Remark(found.contradiction)
    elif "with its optimisations" in found.remark:
        yield Remark(found.remark)


def _found_by_points(files: InstancePair) -> Iterator[Remark]:
    if files.both is None or not _is_small(*files.both):
        return
    try:  # only here: torch takes seconds to load, and judging does not need it
        from dokimos.engine.attacks.base import Budget
        from dokimos.engine.attacks.gradients import PGD
    except ImportError:
        raise packages_missing("The rule easy-sat needs torch", "gradients") from None
    network, asked = files.both
    # The first batch of the descent is random points: with no steps, that is all there is.
    for how, steps in ((f"{_POINTS} random points", 0), (f"{_STEPS} steps of gradient descent", _STEPS)):
        try:
            found = PGD()(network, asked, seed=0, budget=Budget(restarts=_POINTS, steps=steps))
        except DokimosError:
            return
        if found.least_margin <= 0 and _violates(network, asked, found.point):
            yield Remark(f"it is sat, and {how} find a counterexample that holds exactly")
            return


def _violates(network: Network, asked: Property, point: Iterable[float]) -> bool:
    """Whether the point, moved into a box that it leaves by rounding, violates the property exactly."""
    exact = [Fraction(float(x)) for x in point]
    for box in dict.fromkeys(case.box for case in asked.cases if not case.box.is_empty):
        try:
            found = violation_at(network, asked, nearest_point(exact, box))
        except (Undecided, DokimosError):
            continue
        if found.in_box and found.violates:
            return True
    return False


def _proven_by_intervals(files: InstancePair) -> Iterator[Remark]:
    if files.both is None or not _is_small(*files.both):
        return
    network, asked = files.both
    questions = asked.questions()
    if not questions:
        return
    for box in dict.fromkeys(box for box, _ in questions):
        try:
            outputs = enclose(network, box.lower, box.upper)[network.output]
        except DokimosError:
            return
        lower, upper = outputs.lower.reshape(-1), outputs.upper.reshape(-1)
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            return
        ends = [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(lower, upper, strict=True)]
        if not all(any(_is_excluded(c, box, ends) for c in part) for own, part in questions if own == box):
            return
    yield Remark("it is unsat, and plain interval bounds prove it")


def _does_not_fit(files: InstancePair) -> Iterator[Remark]:
    if files.misfit:
        yield Remark(files.misfit)


def _constant(files: InstancePair) -> Iterator[Remark]:
    """Boxes that lie in one cell of a quantisation, or where every unit that bends is off or saturated."""
    if files.both is None or not _is_small(*files.both):
        return
    network, asked = files.both
    boxes = [box for box in dict.fromkeys(case.box for case in asked.cases) if not box.is_empty]
    wide = [box for box in boxes if box.lower != box.upper]
    constant = sum(_output_hardly_varies(network, box) for box in wide)
    if constant:
        where = "the box" if len(boxes) == 1 else f"{constant} of {len(boxes)} boxes"
        yield Remark(f"the outputs do not vary in {where}: evaluating the network at the centre decides it")


def _output_hardly_varies(network: Network, box: Box) -> bool:
    try:
        found = enclose(network, box.lower, box.upper)[network.output]
    except DokimosError:
        return False
    size = np.maximum(1.0, np.maximum(abs(found.lower), abs(found.upper)))
    with np.errstate(invalid="ignore"):
        return bool(np.all(found.upper - found.lower <= _ROUNDING * size))


def _is_excluded(constraint: Linear, box: Box, outputs: Sequence[tuple[Fraction, Fraction]]) -> bool:
    """Whether a constraint holds nowhere: its left side is at least the sum of the minima of its terms."""
    least = sum((min(c * box.lower[i], c * box.upper[i]) for i, c in constraint.inputs), Fraction(0))
    least += sum((min(d * outputs[j][0], d * outputs[j][1]) for j, d in constraint.outputs), Fraction(0))
    return least > constraint.bound or (constraint.strict and least == constraint.bound)


def _is_small(network: Network, asked: Property) -> bool:
    cases = len(asked.cases)
    return cases <= _MOST_CASES and cases * network.multiplications <= _MOST_WORK


def _time_not_needed(published: PublishedRuns) -> Iterator[Remark]:
    deciding = [run for run in published.runs if run.answer.decides]
    if not deciding or any(run.answer is Answer.TIMEOUT for run in published.runs):
        return
    longest = max(deciding, key=lambda run: run.wall_seconds)
    if longest.wall_seconds < _NEEDED_SHARE * published.timeout_seconds:
        yield Remark(
            f"its limit is {published.timeout_seconds:g} s, no tool timed out, and the slowest "
            f"answer, by {longest.verifier}, took {longest.wall_seconds:.1f} s"
        )


def _one_sided(category: PublishedCategory) -> Iterator[Remark]:
    answers = Counter(j.record.answer for j in category.judgements if j.record.answer.decides)
    instances = {j.record.instance for j in category.judgements if j.record.answer.decides}
    if len(answers) == 1 and len(instances) >= _MANY:
        (answer,) = answers
        yield Remark(f"every answer is {answer.value}, on {len(instances)} instances and by all tools")


def _all_settled(instances: Sequence[Sequence[LintFinding]]) -> Iterator[Remark]:
    """Whether one rule settles every instance: there are as many lists as instances, of their findings."""
    for rule in (EASY_SAT, EASY_UNSAT):
        if len(instances) >= _MANY and all(any(f.rule == rule.name for f in one) for one in instances):
            answer = rule.name.removeprefix("easy-")
            yield Remark(f"all {len(instances)} instances are {answer}, each of them easily so")


def _runtime_decides(category: PublishedCategory) -> Iterator[Remark]:
    """Instances that are `sat` in floats only, or by points at which floats and exact values disagree."""
    shown: dict[str, set[WitnessQuality]] = {}
    for judgement in category.judgements:
        if (quality := witness_quality(judgement)) is not None:
            shown.setdefault(judgement.record.instance, set()).add(quality)
    exact = {WitnessQuality.EXACT, WitnessQuality.CLIPPED}
    for name, seen in sorted(shown.items()):
        if WitnessQuality.FLOATS in seen and not seen & exact:
            yield Remark(
                f"{name}: no published counterexample holds exactly, and one does in onnxruntime: whether "
                "it is sat depends on the runtime and the processor"
            )


RUNTIME_DIFFERS: LintRule[InstancePair] = LintRule(
    "runtime-differs",
    "networks that onnxruntime computes differently, unoptimised or optimised",
    LintSeverity.WARNING,
    "export the network without the nodes that are folded, or say which optimisations count",
    _runtime_differs,
)
EASY_SAT: LintRule[InstancePair] = LintRule(
    "easy-sat",
    "counterexamples that random points or a short descent find",
    LintSeverity.WARNING,
    "make the box smaller, or drop the instance",
    _found_by_points,
)
EASY_UNSAT: LintRule[InstancePair] = LintRule(
    "easy-unsat",
    "properties that plain interval bounds prove",
    LintSeverity.WARNING,
    "make the box larger, or drop the instance",
    _proven_by_intervals,
)
TIME_NOT_NEEDED: LintRule[PublishedRuns] = LintRule(
    "time-not-needed",
    "time limits that no tool ever needed",
    LintSeverity.WARNING,
    "lower the limit, or make the instance harder",
    _time_not_needed,
)
DOES_NOT_FIT: LintRule[InstancePair] = LintRule(
    "does-not-fit",
    "a network and a property that do not fit together",
    LintSeverity.ERROR,
    "correct the row, or one of the files",
    _does_not_fit,
)
CONSTANT_OUTPUT: LintRule[InstancePair] = LintRule(
    "constant-output",
    "boxes in which the outputs do not vary, as in one cell of a quantisation",
    LintSeverity.WARNING,
    "make the box larger, or drop the instance",
    _constant,
)
ONE_SIDED: LintRule[PublishedCategory] = LintRule(
    "one-sided",
    "benchmarks all of whose answers, published or easily found, are the same",
    LintSeverity.WARNING,
    "add instances with the opposite answer",
    _one_sided,
)
ALL_SETTLED: LintRule[Sequence[Sequence[LintFinding]]] = LintRule(
    ONE_SIDED.name, ONE_SIDED.about, ONE_SIDED.severity, ONE_SIDED.remedy, _all_settled
)
RUNTIME_DECIDES: LintRule[PublishedCategory] = LintRule(
    "runtime-decides",
    "instances whose answer depends on the runtime or the processor",
    LintSeverity.WARNING,
    "drop the instance, or move its threshold by more than the rounding",
    _runtime_decides,
)
