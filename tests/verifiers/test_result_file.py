from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.suites.answers import Answer, VerifierAnswer
from dokimos.verifiers.base import log_tail
from dokimos.verifiers.result_file import read_point, read_result
from tests.json_mutants import mutants


def result(path: Path, **fields: object) -> Path:
    path.write_text(json.dumps({"schema": 1, **fields}))
    return path


def test_numbers_are_exactly_what_the_verifier_wrote(tmp_path: Path) -> None:
    given = read_result(result(tmp_path / "r", answer="sat", witness=["0.1", "-1e-3", ".5", "+2."]))
    assert given.witness == (Fraction(1, 10), Fraction(-1, 1000), Fraction(1, 2), Fraction(2))


@pytest.mark.parametrize(
    "witness",
    ["0.1", 3, [0.1], ["nan"], ["inf"], ["1/3"], ["1e999999999"], ["0x1p3"], [" 1"], ["1_0"], [None]],
)
def test_nonsense_is_a_witness_that_no_property_accepts(tmp_path: Path, witness: object) -> None:
    given = read_result(result(tmp_path / "r", answer="sat", witness=witness))
    assert (given.answer, given.witness) == (Answer.SAT, ())


def test_only_sat_has_a_witness(tmp_path: Path) -> None:
    given = read_result(result(tmp_path / "r", answer="unsat", witness=["1"], detail="x"))
    assert given == VerifierAnswer(Answer.UNSAT, detail="x")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"sat",
        b"[]",
        b"\xff\xfe",
        b"\x00" * 10,
        b'{"answer": "sat"}',
        b'{"schema": 2, "answer": "sat"}',
        b'{"schema": 1, "answer": "holds"}',
        b'{"schema": 1, "answer": ["sat"]}',
        b'{"schema": 1, "answer": "unsat", "detail": 3}',
        b'{"schema": 1, "answer": "unsa',
        b"[" * 100_000,
    ],
)
def test_anything_else_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(ValueError):
        read_result(tmp_path / "r")


def test_every_prefix_of_a_result_is_refused(tmp_path: Path) -> None:
    whole = result(tmp_path / "r", answer="unsat").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "r").write_bytes(whole[:length])
        with pytest.raises(ValueError):
            read_result(tmp_path / "r")


def test_a_mutant_is_an_answer_or_one_sentence(tmp_path: Path) -> None:
    whole = {"schema": 1, "answer": "sat", "witness": ["1", "0.5"], "outputs": ["2"], "detail": "x"}
    refused = 0
    for mutant in mutants(whole):
        (tmp_path / "r").write_text(json.dumps(mutant))
        try:
            read_result(tmp_path / "r")
        except ValueError as error:
            refused += 1
            assert "\n" not in str(error)
    assert refused > 60


@pytest.mark.parametrize("content", ["NaN", "[NaN]", "[Infinity, 1e999]"])
def test_a_witness_that_is_not_finite_is_still_one(tmp_path: Path, content: str) -> None:
    (tmp_path / "r").write_text(f'{{"schema": 1, "answer": "sat", "witness": {content}}}')
    assert read_result(tmp_path / "r").witness == ()


def test_a_result_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.verifiers.result_file.MOST_BYTES", 10)
    with pytest.raises(ValueError, match="larger than 10 bytes"):
        read_result(result(tmp_path / "r", answer="unsat"))


@pytest.mark.parametrize("sign", ["", "-"])
@pytest.mark.parametrize("exponent", ["", "e999", "e-999", "E+0000000007"])
def test_the_longest_numbers_can_be_written_again(sign: str, exponent: str) -> None:
    point = read_point([f"{sign}{'9' * 1200}.{'9' * 2000}{exponent}"])
    assert point is not None
    assert Fraction(str(point[0])) == point[0]


@pytest.mark.parametrize("word", ["1e1000", "1e-9999", "9" * 1201, "1." + "1" * 2001, "\u0661"])
def test_longer_numbers_are_refused(word: str) -> None:
    assert read_point([word]) is None


def test_points_are_lists() -> None:
    assert read_point([]) == ()
    assert read_point({"a": 1}) is None


def test_the_tail_of_a_log(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"x" * 5000 + "\x1b[1mend é\n".encode() + b"\xff")
    assert log_tail(tmp_path / "log").endswith("?[1mend é\n\ufffd")
    assert len(log_tail(tmp_path / "log")) == 400
    assert log_tail(tmp_path / "missing") == ""
