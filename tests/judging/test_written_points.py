"""Points in all the forms in which people and tools write them."""

from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos.judging.written_points import read_point, write_witness

F = Fraction
POINT = (F(1, 10), F(-3, 2))
FORMS = (
    "0.1,-1.5",
    "0.1 -1.5",
    " 0.1 ,\n-15e-1 \n",
    "((X_0 0.1) (X_1 -1.5) (Y_0 7))",
    "sat\n((X_0 0.1)\n (X_1 -1.5))",
    "((X_1 -1.5) (X_0 0.1))",
    "sat\nX float32 [1,2]\n0.1\n-1.5\nY float32 [1]\n2\n",
)


@pytest.mark.parametrize("text", FORMS)
def test_words_and_files_write_the_same_point(tmp_path: Path, text: str) -> None:
    assert read_point(text) == POINT
    plain, packed = tmp_path / "point", tmp_path / "point.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_point(plain) == read_point(str(packed)) == POINT


def test_numbers_may_be_words_of_their_own() -> None:
    assert read_point(["0.1", "-1.5"]) == read_point(["0.1,", "-1.5"]) == POINT


@pytest.mark.parametrize("text", ["", " , ", "nope", "0.1 nan", "((X_0 1) (X_2 1))", "1e9999", "(" * 5000])
def test_what_is_no_point_is_refused_in_one_sentence(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="is neither a file nor a VNN-COMP witness") as refused:
        read_point(text)
    assert len(str(refused.value)) < 400
    path = tmp_path / "point"
    path.write_text(text)
    with pytest.raises(InputError, match="holds no point"):
        read_point(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for name in ("bytes", "missing", "."):
        with pytest.raises(InputError, match=str(tmp_path)):
            read_point(tmp_path / name)


def test_a_witness_that_is_written_is_read_back_exactly() -> None:
    point = (F(1, 2**70), F(-5), F(1, 10))
    text = write_witness(point, (0.1, -2e-30))
    assert text.startswith("((X_0 0.0000000") and text.endswith("(Y_1 -2e-30))\n")
    assert read_point(text) == point
    with pytest.raises(InputError, match="1/3 has no finite decimal"):
        write_witness((F(1, 3),), ())
