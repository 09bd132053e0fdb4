from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.suites.answers import Answer
from dokimos.verifiers.result_file import Assignment, flat_witness, read_verdict, tensor_witness
from tests.shared import SHARED


def read(tmp_path: Path, text: str, **options: str) -> tuple[Answer, object, str]:
    (tmp_path / "r").write_text(text)
    given = read_verdict(tmp_path / "r", **options)
    return given.answer, given.witness, given.detail


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("unsat", Answer.UNSAT),
        ("unsat\n", Answer.UNSAT),
        (" timeout \r\n", Answer.TIMEOUT),
        ("timed-out\n", Answer.TIMEOUT),
        ("unknown\n", Answer.UNKNOWN),
        ("sat", Answer.SAT),
    ],
)
def test_a_verdict_alone(tmp_path: Path, text: str, answer: Answer) -> None:
    assert read(tmp_path, text) == (answer, None, "")


@pytest.mark.parametrize(
    "text",
    ["", "\n", "\nunsat\n", "UNSAT\n", "it holds\n", "the result is unsat\n", "unsat,12.5\n"],
)
def test_anything_else_is_no_verdict(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="not a verdict"):
        read(tmp_path, text)


def test_an_error_keeps_what_it_says(tmp_path: Path) -> None:
    assert read(tmp_path, "error\nValueError: no\n  such thing\n") == (
        Answer.ERROR,
        None,
        "ValueError: no such thing",
    )


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.verifiers.result_file.MOST_BYTES", 10)
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        read(tmp_path, "sat\n" + " " * 20)


def test_a_flat_witness(tmp_path: Path) -> None:
    text = "sat\n( (X_1 -2.5e-1)\n(X_0 1)(Y_0 nan) )\n"
    assert read(tmp_path, text) == (Answer.SAT, (Fraction(1), Fraction(-1, 4)), "")
    assert read_verdict(tmp_path / "r").outputs is None
    (tmp_path / "r").write_text("sat\n((X_0 1) (Y_1 3) (Y_0 2.5))")
    assert read_verdict(tmp_path / "r").outputs == (Fraction(5, 2), Fraction(3))


@pytest.mark.parametrize(
    "witness",
    [
        "((X_0 1)",
        "(X_0 1)",
        "((X_1 1))",
        "((X_0 1) (X_0 1))",
        "((X_0 1) (X_2 1))",
        "((X_0 nan))",
        "((X_0 1) extra)",
        "((X_0 1 2))",
        "((Z_0 1))",
        "((Y_0 1))",
    ],
)
def test_a_flat_witness_that_is_none(tmp_path: Path, witness: str) -> None:
    assert flat_witness(witness) is None
    answer, point, detail = read(tmp_path, f"sat\n{witness}\n")
    assert (answer, point) == (Answer.SAT, ())
    assert detail


@pytest.mark.parametrize("witness", ["", "  \n", "()", "( )", "(())"])
def test_an_empty_witness_is_none_given(tmp_path: Path, witness: str) -> None:
    answer, point, _ = read(tmp_path, f"sat\n{witness}")
    assert (answer, point) == (Answer.SAT, None)


def test_a_witness_by_tensors(tmp_path: Path) -> None:
    text = "sat\nX float32 [1,2]\n0.5\n-1e-3\n\nY float32 [1]\n2\n"
    assert read(tmp_path, text) == (Answer.SAT, (Fraction(1, 2), Fraction(-1, 1000)), "")
    assert read(tmp_path, text, input_name="Y")[1] == (Fraction(2),)
    assert read_verdict(tmp_path / "r").outputs == (Fraction(2),)
    assert tensor_witness("X real []\n0.5", "X", "Y") == Assignment((Fraction(1, 2),), None)


@pytest.mark.parametrize(
    "witness",
    [
        "X float32 [1,2]\n0.5",
        "X float32 [1]\n0.5\n0.5",
        "X float32 [1]\n0.5\nX float32 [1]\n0.5",
        "Z float32 [1]\n0.5",
        "0.5",
        "X float32 [1]\ninf",
        "X float32 [1]\n0.5\nY float32 [1]\n1\nY float32 [1]\n1",
    ],
)
def test_a_witness_by_tensors_that_is_none(tmp_path: Path, witness: str) -> None:
    assert tensor_witness(witness, "X", "Y") is None
    assert read(tmp_path, f"sat\n{witness}\n")[1] == ()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5), st.randoms())
def test_any_order_of_any_finite_numbers(values: list[float], random: object) -> None:
    pairs = [f"(X_{i} {value!r})" for i, value in enumerate(values)]
    random.shuffle(pairs)  # type: ignore[attr-defined]
    found = flat_witness(f"({' '.join(pairs)} (Y_0 0))")
    assert found == Assignment(tuple(Fraction(repr(v)) for v in values), (Fraction(0),))


FILES = sorted(SHARED.glob("results2025/*/*/*.counterexample.gz")) if SHARED.is_dir() else []


@pytest.mark.skipif(not FILES, reason="there are no published counterexamples here")
def test_published_counterexamples_are_read() -> None:
    tools = set()
    for path in FILES:
        assert flat_witness(gzip.decompress(path.read_bytes()).decode()), path
        tools.add(path.parent.parent.name)
    assert {"alpha_beta_crown", "nnenum", "pyrat", "neuralsat"} <= tools
