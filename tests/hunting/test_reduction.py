"""Reductions: as small as they get, proven at each step, and never another bug than at the start."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dokimos.campaigns.journal import RunRecord
from dokimos.campaigns.settings import RunSettings
from dokimos.checker.check import check
from dokimos.core.errors import InvalidProof
from dokimos.hunting.asking import Wrong
from dokimos.hunting.file_graph import FileGraph, NoChange, read_graph
from dokimos.hunting.moves import PASSES
from dokimos.hunting.proven_draws import RANDOM
from dokimos.hunting.reduction import Reducer, ReductionStep, cause_of, nudged, oddities
from dokimos.hunting.specimen import LabelProver, Specimen, digits_of
from dokimos.hunting.write_up import reduce_one, wrong_of
from dokimos.judging.verdicts import Verdict
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.answers import Answer
from dokimos.suites.instance import LabelledInstance, Semantics
from dokimos.suites.vnnlib.model import Linear, Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.checker.statements import base_statements
from tests.hunting.in_process import InProcess
from tests.hunting.specimens import PROVER, asking, dilated, hinge, random_graph

UNSAT = Wrong(Verdict.WRONG_UNSAT)


class Fake(InProcess):
    """Answers `unsat` where a graph has something, `sat` with the witness elsewhere, or as it is told."""

    def __init__(
        self, is_wrong: Callable[[FileGraph], bool], otherwise: Answer = Answer.SAT, *, jobs: int = 1
    ) -> None:
        super().__init__("ideal", jobs=jobs)
        self._is_wrong, self._otherwise = is_wrong, otherwise

    def ask(self, labelled: LabelledInstance) -> RunRecord:
        record = super().ask(labelled)
        if labelled.instance.family == "probe":
            return record
        wrong = self._is_wrong(read_graph(labelled.instance.network_file))
        answer = Answer.UNSAT if wrong else self._otherwise
        return replace(record, answer=answer, witness=record.witness if answer is Answer.SAT else None)


def reduced(asker: InProcess, specimen: Specimen, wrong: Wrong = UNSAT) -> Specimen:
    return Reducer(asker, wrong, PROVER, lambda _: None).run(specimen)


def test_a_wrong_bound_is_left_with_a_handful_of_numbers() -> None:
    asker, steps = InProcess("attacking-relu-intercept"), list[ReductionStep]()
    start = hinge(2)
    labelled = PROVER.proven(start)
    assert labelled is not None and wrong_of(asker.ask(labelled), labelled) == UNSAT
    small = Reducer(asker, UNSAT, PROVER, steps.append).run(start)
    assert (
        small.numbers <= 4 and small.graph.operators == ("MatMul", "Relu") and small.asked.input_size == 1
    )
    proven = PROVER.proven(small)
    assert proven is not None and proven.truth is not None
    check(proven.instance, proven.truth)
    assert wrong_of(asker.ask(proven), proven) == UNSAT
    assert [step.numbers for step in steps] == sorted((step.numbers for step in steps), reverse=True)
    assert cause_of(small, UNSAT, asker, PROVER, Fraction(1, 100)).needed == ("Relu",)


def has_dilations(graph: FileGraph) -> bool:
    return any("dilations" in node.attributes for node in graph.nodes)


def test_the_same_reduction_is_found_again_whatever_number_of_jobs() -> None:
    found = [reduced(Fake(has_dilations, jobs=jobs), dilated()) for jobs in (1, 2)]
    assert len({(small.network, small.property_text) for small in found}) == 1


def test_what_is_asked_twice_is_asked_once() -> None:
    asker = Fake(has_dilations)
    reduced(asker, dilated())
    before = asker.asked
    reduced(asker, dilated())
    assert asker.asked == before


@pytest.mark.parametrize("otherwise", [Answer.TIMEOUT, Answer.ERROR, Answer.UNKNOWN, Answer.SAT])
def test_only_the_same_wrong_answer_is_progress(otherwise: Answer) -> None:
    """The tool is wrong as long as there are four nodes, and says something else for fewer."""
    graph = random_graph("dense", 1)
    nodes, outputs = len(graph.nodes), read_onnx(graph.write()).output_size
    start = asking(graph, Fraction(10**6), outputs)
    small = reduced(Fake(lambda graph: len(graph.nodes) >= nodes, otherwise), start)
    assert len(small.graph.nodes) == nodes


def test_a_reduction_does_not_slide_into_the_bug_of_zeros() -> None:
    """Wrong about dilations, and, by another bug, wherever a weight is 0: the dilations stay."""

    def is_wrong(graph: FileGraph) -> bool:
        zeros = any((values == 0).any() for _, values in graph.floats())
        return zeros or has_dilations(graph)

    start = dilated()
    assert not oddities(start)
    small = reduced(Fake(is_wrong), start)
    assert has_dilations(small.graph)
    assert cause_of(small, UNSAT, Fake(is_wrong), PROVER, Fraction(1)).needed[0] == "Conv dilations"


def test_what_is_odd_is_found_and_perturbed() -> None:
    start = hinge(2)
    assert oddities(start) == {"zero weights"}
    assert not oddities(nudged(start, "zero weights"))
    case = start.asked.cases[0]
    point = replace(case, box=replace(case.box, lower=case.box.upper))
    narrow = replace(start, asked=replace(start.asked, cases=(point,)))
    assert "point boxes" in oddities(narrow)
    assert "point boxes" not in oddities(nudged(narrow, "point boxes"))
    tiny = start.graph.with_constants({"w0": np.full_like(start.graph.constants["w0"], 1e-6)})
    assert "tiny weights" in oddities(replace(start, graph=tiny))
    assert "tiny weights" not in oddities(nudged(replace(start, graph=tiny), "tiny weights"))


def test_a_crash_is_made_small_by_what_it_says() -> None:
    class Crashing(Fake):
        def ask(self, labelled: LabelledInstance) -> RunRecord:
            record = super().ask(labelled)
            words = "ValueError: cannot take 17 dilations of /tmp/x.onnx"
            return replace(record, answer=Answer.ERROR, detail=f"exit code 1: Traceback\n{words}")

    crash = "ValueError: cannot take # dilations of #"
    start = dilated()
    labelled = PROVER.proven(start)
    assert labelled is not None
    asker = Crashing(lambda _: True)
    assert wrong_of(asker.ask(labelled), labelled) == Wrong(Verdict.UNDECIDED, crash)
    assert reduced(asker, start, Wrong(Verdict.UNDECIDED, crash)).numbers < start.numbers


@pytest.mark.parametrize("shape", RANDOM)
def test_every_move_gives_a_question_that_can_be_read(shape: str) -> None:
    for seed in range(2):
        graph = random_graph(shape, seed)
        start = asking(graph, Fraction(1), read_onnx(graph.write()).output_size)
        made = 0
        for make in PASSES:
            for number, move in enumerate(make(start)):
                if number > 12:
                    break
                try:
                    found = move()
                    network = read_onnx(found.network)
                except NoChange:
                    continue
                asked = read_vnnlib(found.property_text.encode(), file="x")
                assert (asked.input_size, asked.output_size) == (network.input_size, network.output_size)
                assert found.witness is None or len(found.witness) == network.input_size
                made += 1
        assert made


def test_short_numbers_are_short() -> None:
    sizes = [digits_of(x) for x in (0.0, 1.0, 2.0, 0.375, 0.1234567)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[1] < sizes[-1]


def test_the_threshold_follows_and_the_margin_stays() -> None:
    far = hinge(1)
    changed = replace(far, graph=far.graph.with_constants({"w3": np.array([100.0], dtype=np.float32)}))
    assert PROVER.proven(changed) is None
    (followed,) = PROVER.variants(changed)
    labelled = PROVER.proven(followed)
    assert labelled is not None and labelled.truth is not None
    check(labelled.instance, labelled.truth)


def test_the_threshold_of_a_proof_follows_too() -> None:
    start = replace(hinge(1), witness=None)
    assert PROVER.proven(start) is None, "there is a counterexample"
    for followed in PROVER.variants(start):
        labelled = PROVER.proven(followed)
        assert labelled is not None and labelled.truth is not None
        check(labelled.instance, labelled.truth)


def test_what_cannot_be_made_smaller_keeps_a_proof_that_the_search_does_not_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LabelProver, "proven", lambda *_: None)
    monkeypatch.setattr(LabelProver, "variants", lambda *_: ())
    found = (each for each in base_statements("rewritten") if each.truth.claim(Semantics.REAL).margin)
    statement, asker = next(found), InProcess("swapped-words")
    monkeypatch.setattr(asker, "open", nullcontext)
    monkeypatch.setattr("dokimos.hunting.write_up.Asker", lambda *_: asker)
    monkeypatch.setattr("dokimos.hunting.write_up.ask_by_itself", lambda *_: "")

    def reduced() -> LabelledInstance:
        instance, truth = statement.instance, statement.truth
        how = {"folder": tmp_path, "settings": RunSettings(), "most_seconds": 0.0}
        return reduce_one(instance, truth, asker.verifier, **how).labelled

    kept = reduced()
    assert kept.truth is not None and kept.truth.certificate == statement.truth.certificate
    assert kept.truth.network_sha256 == kept.instance.network_sha256
    monkeypatch.setattr(Reducer, "run", lambda _, specimen: replace(specimen))
    with pytest.raises(InvalidProof, match="not found a second time"):
        reduced()


def test_the_node_whose_bounds_are_wrong_is_a_cause() -> None:
    asker = InProcess("attacking-relu-intercept")
    start = hinge(2)
    labelled = PROVER.proven(start)
    assert labelled is not None
    record = asker.ask(labelled)
    assert record.answer is Answer.UNSAT
    excluded = asker.excluded(labelled, record)
    assert excluded is not None and excluded.lower > excluded.value
    cause = cause_of(start, UNSAT, asker, PROVER, Fraction(1), node=excluded.operator)
    assert cause.node in {node.op for node in start.graph.nodes}
    assert cause.node in replace(cause, needed=()).key
    assert asker.excluded(labelled, replace(record, answer=Answer.SAT)) is None


@pytest.mark.parametrize(("shift", "is_rounding"), [("1/1000000", True), ("1/4", False)])
def test_a_witness_that_only_rounding_spoils_is_no_finding(shift: str, is_rounding: bool) -> None:
    class Near(Fake):
        """Answers with the point of the box where the constraint holds with equality, moved a little."""

        def ask(self, labelled: LabelledInstance) -> RunRecord:
            point = (Fraction(9, 10) - Fraction(shift),)
            return replace(super().ask(labelled), answer=Answer.SAT, witness=point)

    labelled = PROVER.proven(replace(hinge(1), asked=replace_bound(hinge(1), Fraction(-14, 10))))
    assert labelled is not None
    asker = Near(lambda _: True)
    wrong = wrong_of(asker.ask(labelled), labelled)
    assert wrong is not None and wrong.verdict is Verdict.BAD_WITNESS
    assert wrong.is_rounding is is_rounding
    assert wrong.holds(asker.ask(labelled), labelled)
    assert (
        Wrong(Verdict.BAD_WITNESS, misses_by=Fraction(1)).holds(asker.ask(labelled), labelled)
        is not is_rounding
    )


def replace_bound(specimen: Specimen, bound: Fraction) -> Property:
    (case,) = specimen.asked.cases
    ((one,),) = case.any_of
    return replace(specimen.asked, cases=(replace(case, any_of=((replace(one, bound=bound),),)),))


def test_a_constraint_on_two_outputs_becomes_one_on_one() -> None:
    """Its value at the witness takes the place of the output that is not needed."""
    graph = random_graph("dense", 1)
    outputs = read_onnx(graph.write()).output_size
    assert outputs > 1
    start = asking(graph, Fraction(10**6), outputs)
    (case,) = start.asked.cases
    both = Linear((), ((0, Fraction(1)), (1, Fraction(-1))), Fraction(10**6))
    start = replace(start, asked=replace(start.asked, cases=(replace(case, any_of=((both,),)),)))
    small = reduced(Fake(lambda _: True), start)
    ((one,),) = small.asked.cases[0].any_of
    assert len(one.outputs) == 1 and small.asked.output_size == 1
