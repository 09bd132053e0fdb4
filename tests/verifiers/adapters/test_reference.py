"""Our own verifier against an oracle that shares nothing with it, and as a process."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.checker import Problem
from dokimos.checker.check import check
from dokimos.checker.linear.proof import LinearProof
from dokimos.engine import reference
from dokimos.engine.linear import LinearFinding
from dokimos.engine.reference import decide
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided
from dokimos.suites.answers import Answer
from dokimos.suites.entry import load_truth
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.verifiers.adapters.built_in import Reference
from dokimos.verifiers.runners import reference_runner as runner
from tests.checker.files import instance_of, model, question
from tests.scripting import sigmoid_network
from tests.verifiers.recording import QUESTIONS, SMALL, Question, ask, at_least, dense


@dataclass(frozen=True)
class Drawn:
    """Two hidden layers of three on two inputs; with `skip`, the first is added to the second.

    It is unsafe where, for some member of `unsafe`, all rows a·(x, y) <= b hold.
    """

    weights: dict[str, np.ndarray]
    skip: bool
    low: Fraction
    unsafe: tuple[tuple[tuple[tuple[int, int, int, int], Fraction], ...], ...]

    @property
    def network(self) -> bytes:
        nodes = [
            ("Gemm", ["X", "w0", "b0"], "h0"),
            ("Relu", ["h0"], "r0"),
            ("Gemm", ["r0", "w1", "b1"], "h1"),
            ("Relu", ["h1"], "r1"),
            ("Add", ["r1", "r0"], "s") if self.skip else ("Neg", ["r1"], "s"),
            ("Gemm", ["s", "w2", "b2"], "Y"),
        ]
        return model(nodes, self.weights, [1, 2], [1, 2])

    @property
    def asked(self) -> Property:
        box = Box((self.low, Fraction(-1)), (self.low + Fraction(3, 2), Fraction(1)))
        any_of = tuple(
            tuple(
                Linear(
                    tuple((i, Fraction(c)) for i, c in enumerate(row[:2]) if c),
                    tuple((j, Fraction(c)) for j, c in enumerate(row[2:]) if c),
                    bound,
                )
                for row, bound in part
            )
            for part in self.unsafe
        )
        return Property((Signature("f", "X", (1, 2), "Y", (1, 2)),), (Case(box, any_of),))

    def is_sat(self, *, margin: Fraction = Fraction(0)) -> bool:
        """z3's opinion, in exact arithmetic; constraints may be missed by less than the margin."""
        x = [z3.Real("x0"), z3.Real("x1")]
        box = self.asked.cases[0].box
        solver = z3.Solver()
        for v, low, high in zip(x, box.lower, box.upper, strict=True):
            solver.add(v >= z3.Q(*low.as_integer_ratio()), v <= z3.Q(*high.as_integer_ratio()))

        def affine(values: list[Any], layer: int) -> list[Any]:
            w, b = self.weights[f"w{layer}"], self.weights[f"b{layer}"]
            return [
                z3.Sum([_exact(w[i, j]) * v for i, v in enumerate(values)]) + _exact(b[j])
                for j in range(len(b))
            ]

        def relu(values: list[Any]) -> list[Any]:
            return [z3.If(v >= 0, v, z3.RealVal(0)) for v in values]

        first = relu(affine(x, 0))
        second = relu(affine(first, 1))
        y = affine(
            [a + b for a, b in zip(second, first, strict=True)] if self.skip else [-a for a in second], 2
        )
        cases = []
        for part in self.unsafe:
            rows = []
            for row, bound in part:
                left = z3.Sum([c * v for c, v in zip(row, [*x, *y], strict=True)])
                level = z3.Q(*(bound + margin).as_integer_ratio())
                rows.append(left < level if margin else left <= level)
            cases.append(z3.And(rows))
        solver.add(z3.Or(cases))
        return bool(solver.check() == z3.sat)


def _exact(value: float) -> Any:
    return z3.Q(*Fraction(float(value)).as_integer_ratio())


def drawn(rng: np.random.Generator, *, skip: bool) -> Drawn:
    sizes = {"w0": (2, 3), "b0": (3,), "w1": (3, 3), "b1": (3,), "w2": (3, 2), "b2": (2,)}
    levels = [Fraction(int(n), 4) for n in rng.integers(-40, 41, size=2)]
    unsafe = [
        ((((0, 0, -1, 0), levels[0]),),),
        ((((0, 0, 1, -1), Fraction(0)),),),
        ((((0, 0, 1, 0), levels[0]), ((0, 0, 0, -1), levels[1])),),
        ((((0, 0, -1, 0), levels[0]), ((0, 0, 0, 1), levels[1])), (((0, 0, 1, 0), levels[1]),)),
        ((((1, 0, 1, 0), levels[0]),),),
    ][rng.integers(5)]
    return Drawn(
        {name: rng.integers(-8, 9, size=shape) / 4 for name, shape in sizes.items()},
        skip,
        Fraction(int(rng.integers(-4, 2)), 2),
        unsafe,
    )


@settings(deadline=None, max_examples=80)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_it_agrees_with_the_oracle_and_its_proofs_hold(seed: int, skip: bool) -> None:
    draw = drawn(np.random.default_rng(seed), skip=skip)
    network = read_onnx(draw.network)
    decision = decide(network, draw.asked, seconds=60)
    if decision.answer is Answer.SAT:
        assert draw.is_sat()
        assert decision.witness is not None
        assert violation_at(network, draw.asked, decision.witness).violates
    elif decision.answer is Answer.UNSAT:
        assert decision.certificate is not None
        margin = LinearProof().prove(Problem(network, draw.asked), decision.certificate.data).real
        assert margin > 0
        assert not draw.is_sat(margin=margin)
    else:
        # Only a question that is decided by equality is too close to call.
        assert decision.answer is Answer.UNKNOWN
        assert draw.is_sat(margin=Fraction(1, 2**20))


@pytest.mark.parametrize("power", [10, 40, 90])
@pytest.mark.parametrize(("bound", "answer"), [("2.5", Answer.SAT), ("3.5", Answer.UNSAT)])
def test_the_size_of_the_numbers_does_not_matter(power: int, bound: str, answer: Answer) -> None:
    """x + 2 through a unit of size 2^−power, on [−1, 1]."""
    small = 2.0**-power
    weights = {"w": [[small]], "b": [2 * small], "v": [[1 / small]]}
    nodes = [("Gemm", ["X", "w", "b"], "h"), ("Relu", ["h"], "r"), ("MatMul", ["r", "v"], "Y")]
    network = read_onnx(model(nodes, weights, [1, 1], [1, 1]))
    assert decide(network, read_vnnlib(at_least(bound, inputs=1), file="p"), seconds=10).answer is answer


def test_all_inputs_empty_is_unsat() -> None:
    asked = read_vnnlib(question([(1, 0), (0, 1)], 1, "(>= Y_0 0.0)"), file="p")
    assert decide(read_onnx(SMALL), asked, seconds=10).answer is Answer.UNSAT


def test_a_proof_that_does_not_hold_is_never_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the search believed that it had one."""
    wrong = LinearFinding({"questions": [{}]}, 0.0)
    monkeypatch.setattr(reference.LinearSearch, "run", lambda _: wrong)
    monkeypatch.setattr(reference, "violation_at", _undecided)
    asked = read_vnnlib(at_least("8.0", inputs=2), file="p")
    decision = decide(read_onnx(SMALL), asked, seconds=10)
    assert (decision.answer, decision.certificate) == (Answer.UNKNOWN, None)
    assert "a leaf's bound is" in decision.detail


def test_what_cannot_be_decided_is_left_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "violation_at", _undecided)
    asked = read_vnnlib(at_least("8.0", inputs=2), file="p")
    decision = decide(read_onnx(SMALL), asked, seconds=3)
    assert decision.answer in (Answer.UNKNOWN, Answer.TIMEOUT)
    assert decision.certificate is None


def _undecided(*_: object) -> None:
    raise Undecided("no value is known")


def test_it_stops_when_its_time_is_over() -> None:
    hard = QUESTIONS["out-of-time"]
    decision = decide(read_onnx(hard.network), read_vnnlib(hard.asked, file="p"), seconds=0.2)
    assert decision.answer is Answer.TIMEOUT


def test_other_operators_are_decided_too(tmp_path: Path) -> None:
    (tmp_path / "n.onnx").write_bytes(sigmoid_network())
    (tmp_path / "p.vnnlib").write_bytes(at_least("0.5", inputs=2))
    decision = runner.answer(tmp_path / "n.onnx", tmp_path / "p.vnnlib", seconds=10)
    assert decision.answer is Answer.SAT and decision.witness is not None


@pytest.mark.parametrize(("bound", "answer"), [("8.0", Answer.SAT), ("50.0", Answer.UNSAT)])
def test_as_a_process(tmp_path: Path, bound: str, answer: Answer) -> None:
    verifier = Reference()
    query, outcome, log = ask(verifier, Question(SMALL, at_least(bound, inputs=2)), tmp_path)
    said = verifier.answer(outcome, query, log)
    assert said.answer is answer
    assert (said.witness is not None) == (answer is Answer.SAT)
    assert (said.outputs is not None) == (answer is Answer.SAT)


def test_sizes_that_do_not_fit_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "n.onnx").write_bytes(dense([3, 2, 1], seed=0))
    (tmp_path / "p.vnnlib").write_bytes(at_least("0.5", inputs=2))
    decision = runner.answer(tmp_path / "n.onnx", tmp_path / "p.vnnlib", seconds=1)
    assert decision.answer is Answer.ERROR
    assert "3" in decision.detail


def test_the_certificate_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = at_least("50.0", inputs=2)
    (tmp_path / "n.onnx").write_bytes(SMALL)
    (tmp_path / "p.vnnlib").write_bytes(asked)
    names = [str(tmp_path / name) for name in ("n.onnx", "p.vnnlib", "r")]
    monkeypatch.setattr("sys.argv", ["reference", "--certificate", str(tmp_path / "c"), *names])
    runner.main()
    truth = load_truth((tmp_path / "c").read_text(), file="c")
    proven = check(instance_of(SMALL, asked), truth)
    assert proven.real > 0
    assert proven.floats is not None


@pytest.mark.parametrize("asked", [["(>= Y_0 1e25)", "(<= Y_1 0.5)"], ["(>= Y_0 1e25)"]])
def test_numbers_beyond_the_solver_are_left_to_exact_arithmetic(asked: list[str]) -> None:
    """On [0, 1] the outputs are 2^80·x and x: the solver refuses the first, and the program as a whole."""
    weights = {"w": [[1.0, 1.0]], "b": [0.0, 0.0], "v": [[2.0**80, 0.0], [0.0, 1.0]]}
    nodes = [("Gemm", ["X", "w", "b"], "h"), ("Relu", ["h"], "r"), ("MatMul", ["r", "v"], "Y")]
    network = read_onnx(model(nodes, weights, [1, 1], [1, 2]))
    found = decide(network, read_vnnlib(question([(0, 1)], 2, *asked), file="p"), seconds=10)
    assert found.answer is Answer.UNSAT
