import gzip
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dokimos.core.errors import Place, UnreadableFile
from dokimos.suites.entry import read_vnnlib_file
from dokimos.suites.folder import multiplying_network
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Relation, Signature
from dokimos.suites.vnnlib.reader import is_version_2, parse_vnnlib, read_vnnlib
from dokimos.suites.vnnlib.writer import write_vnnlib1, write_vnnlib2
from tests.shared import SHARED
from tests.suites.vnnlib.strategies import flat_properties, tensor_properties

CORPUS = Path(__file__).resolve().parents[2] / "corpus" / "vnnlib"
ACCEPT = sorted((CORPUS / "accept").glob("*.vnnlib"))
REJECT = sorted((CORPUS / "reject").glob("*.vnnlib"))
REAL_FILES = sorted(SHARED.rglob("*.vnnlib.gz"))

F = Fraction
FLAT = "(declare-const X_0 Real)\n(declare-const Y_0 Real)\n(declare-const Y_1 Real)\n"
UNIT = "(assert (<= X_0 1.0))\n(assert (>= X_0 0.0))\n"


def constraints(text: str) -> tuple[tuple[Linear, ...], ...]:
    (case,) = parse_vnnlib(FLAT + UNIT + text).cases
    return case.any_of


def y(terms: dict[int, int], bound: Fraction | int, strict: bool = False) -> Linear:
    return Linear((), tuple((j, F(c)) for j, c in terms.items()), F(bound), strict)


@pytest.mark.parametrize("path", ACCEPT, ids=lambda p: p.stem)
def test_accepts(path: Path) -> None:
    assert read_vnnlib_file(path).cases


@pytest.mark.parametrize("path", REJECT, ids=lambda p: p.stem)
def test_rejects_with_place_and_reason(path: Path) -> None:
    expected = re.match(r"; expect (\d+):(\d+) (.*)\n", path.read_text())
    assert expected is not None
    with pytest.raises(UnreadableFile) as caught:
        read_vnnlib_file(path)
    assert caught.value.place == Place(str(path), int(expected[1]), int(expected[2]))
    assert expected[3] in caught.value.reason
    assert "\n" not in caught.value.reason and len(caught.value.reason) < 250


def test_the_corpus_is_there() -> None:
    assert len(ACCEPT) >= 9 and len(REJECT) >= 50


def test_flat_property() -> None:
    property = parse_vnnlib(FLAT + UNIT + "(assert (<= Y_0 Y_1))")
    assert property == Property(
        (Signature("f", "X", (1,), "Y", (2,)),),
        (Case(Box((F(0),), (F(1),)), ((y({0: 1, 1: -1}, 0),),)),),
    )


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("(>= Y_0 0.1)", ((y({0: -1}, F(-1, 10)),),)),
        ("(< Y_0 3)", ((y({0: 1}, 3, True),),)),
        ("(> Y_0 Y_1)", ((y({0: -1, 1: 1}, 0, True),),)),
        ("(= Y_0 2.0)", ((y({0: 1}, 2), y({0: -1}, -2)),)),
        ("(<= (+ Y_0 (* 2.0 Y_1 3.0) 1.0) (- Y_1 5.0 Y_0))", ((y({0: 2, 1: 5}, -6),),)),
        ("(<= (- Y_0) (- (- 1.0)))", ((y({0: -1}, 1),),)),
        ("(<= (* (- 2.0 1.0) Y_0) 1.0)", ((y({0: 1}, 1),),)),
        ("(<= (* (- Y_0 Y_0) Y_1) 1.0)", ((),)),
        ("(<= 1.0 2.0)", ((),)),
        ("(<= 2.0 1.0)", ((Linear((), (), F(-1)),),)),
        ("(or (<= Y_0 0.0) (<= Y_1 0.0))", ((y({0: 1}, 0),), (y({1: 1}, 0),))),
    ],
)
def test_formulas(formula: str, expected: tuple[tuple[Linear, ...], ...]) -> None:
    assert constraints(f"(assert {formula})") == expected


def test_and_distributes_over_or() -> None:
    found = constraints(
        "(assert (and (or (<= Y_0 0.0) (<= Y_0 1.0)) (or (<= Y_1 0.0) (<= Y_1 1.0))))(assert (<= Y_1 5.0))"
    )
    assert found == tuple((y({1: 1}, 5), y({0: 1}, a), y({1: 1}, b)) for a in (0, 1) for b in (0, 1))


def test_not_equal_is_either_of_two_strict_constraints() -> None:
    text = (CORPUS / "accept" / "v2-simple.vnnlib").read_text()
    (case,) = parse_vnnlib(text).cases
    assert case.any_of == (
        (y({0: 1, 1: -1}, 0, True),),
        (Linear(((0, F(1)),), ((0, F(1)), (1, F(2))), F(2), True),),
        (Linear(((0, F(-1)),), ((0, F(-1)), (1, F(-2))), F(-2), True),),
    )


def test_boxes_inside_the_disjuncts_make_cases() -> None:
    property = read_vnnlib_file(CORPUS / "accept" / "boxes-in-cases.vnnlib")
    assert property.cases == (
        Case(Box((F(-1),), (F(0),)), ((y({0: 1}, 0),),)),
        Case(Box((F(1),), (F(2),)), ((y({0: -1}, -1),),)),
    )


def test_disjuncts_with_one_box_make_one_case() -> None:
    looser = "(and (<= X_0 3.0) (<= Y_0 0.0))"
    text = f"(assert (or {looser} (and (<= X_0 0.5) (<= Y_0 1.0)) (<= Y_1 0.0)))"
    first, second = parse_vnnlib(FLAT + UNIT + text).cases
    assert first == Case(Box((F(0),), (F(1),)), ((y({0: 1}, 0),), (y({1: 1}, 0),)))
    assert second == Case(Box((F(0),), (F(1, 2),)), ((y({0: 1}, 1),),))


def test_strict_bound_closes_the_box_and_stays() -> None:
    (case,) = parse_vnnlib(FLAT + UNIT + "(assert (> X_0 0.5))").cases
    assert case == Case(Box((F(1, 2),), (F(1),)), ((Linear(((0, F(-1)),), (), F(-1, 2), True),),))


def test_scaled_bound_is_a_bound() -> None:
    (case,) = parse_vnnlib(FLAT + UNIT + "(assert (<= (* 3.0 X_0) 1.0))").cases
    assert case == Case(Box((F(0),), (F(1, 3),)), ((),))


def test_contradictory_bounds_give_an_empty_box() -> None:
    (case,) = read_vnnlib_file(CORPUS / "accept" / "contradictory-bounds.vnnlib").cases
    assert case.box.is_empty and case.any_of == ((y({0: 1}, 0),),)


def test_without_output_constraint_everything_is_unsafe() -> None:
    (case,) = read_vnnlib_file(CORPUS / "accept" / "no-output-constraint.vnnlib").cases
    assert case.any_of == ((),)


def test_bounds_follow_through_linear_constraints() -> None:
    property = read_vnnlib_file(CORPUS / "accept" / "v2-monotonic.vnnlib")
    (case,) = property.cases
    half, quarter = F(1, 2), F(1, 4)
    assert case.box == Box((-half, quarter, -half, quarter), (half, quarter, half, quarter))
    assert property.networks[1] == Signature("g", "X_g", (2,), "Y_g", (1,), Relation.EQUAL, "f")
    assert case.any_of == (
        (
            Linear(((0, F(-1)), (2, F(1))), (), F(0)),
            Linear(((1, F(1)), (3, F(-1))), (), F(0)),
            Linear(((1, F(-1)), (3, F(1))), (), F(0)),
            Linear((), ((0, F(1)), (1, F(-1))), F(0), True),
        ),
    )


def test_bounds_follow_through_chains_and_sums() -> None:
    declared = "".join(f"(declare-const X_{i} Real)\n" for i in range(4)) + "(declare-const Y_0 Real)\n"
    text = (
        "(assert (== X_3 (+ X_2 1.0)))(assert (== X_2 (* -2.0 X_1)))"
        "(assert (== (+ X_0 X_1) 3.0))(assert (and (<= X_0 1.0) (>= X_0 0.0)))"
    )
    (case,) = parse_vnnlib(declared + text).cases
    assert case.box == Box((F(0), F(2), F(-6), F(-5)), (F(1), F(3), F(-4), F(-3)))


def test_bounds_may_follow_inside_a_disjunct() -> None:
    text = (
        FLAT.replace("X_0 Real)", "X_0 Real)\n(declare-const X_1 Real)", 1)
        + UNIT
        + "(assert (or (and (>= X_1 X_0) (<= X_1 2.0)) (and (<= X_1 X_0) (>= X_1 -1.0))))"
    )
    first, second = parse_vnnlib(text).cases
    assert first.box == Box((F(0), F(0)), (F(1), F(2)))
    assert second.box == Box((F(0), F(-1)), (F(1), F(1)))


def test_tensors_are_numbered_row_major() -> None:
    text = "(vnnlib-version <2.0>)(declare-network f (declare-input X float32 [2, 3])"
    text += " (declare-output Y float32 [2,2]))"
    text += "".join(
        f"(assert (and (>= X[{i}, {j}] 0.0) (<= X [{i},{j}] {i}{j}.5)))" for i in (0, 1) for j in range(3)
    )
    text += "(assert (<= Y[1,0] 1.0))"
    (case,) = parse_vnnlib(text).cases
    assert case.box.upper == tuple(F(k) + F(1, 2) for k in (0, 1, 2, 10, 11, 12))
    assert case.any_of == ((y({2: 1}, 1),),)


def test_fast_lane_and_general_reading_agree() -> None:
    plain = FLAT + UNIT + "(assert (<= Y_0 -1.5e-1))\n(assert (>= Y_1 2))\n"
    laid_out = plain.replace("(<=", "(<= ; at most\n").replace("(>=", "(>= ; at least\n")
    assert parse_vnnlib(plain) == parse_vnnlib(laid_out.replace(" Real", " ; sort\n Real"))


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_a_comment_ends_with_its_line_however_that_is_written(end: str) -> None:
    """Text files are opened with universal newlines: to their readers the assert is no comment."""
    text = FLAT + UNIT + f"; safe unless{end}(assert (<= Y_0 1)){end}(assert ; or{end} (<= Y_1 2)){end}"
    expected = parse_vnnlib(FLAT + UNIT + "(assert (<= Y_0 1)) (assert (<= Y_1 2))")
    assert read_vnnlib(text.encode(), file="a.vnnlib") == expected


@pytest.mark.parametrize("end", ["\v", "\f", "\x1c", "\x85", "\u2028"])
def test_what_ends_a_line_for_some_readers_only_is_refused(end: str) -> None:
    with pytest.raises(UnreadableFile, match="for some readers but not for others"):
        parse_vnnlib(FLAT + UNIT + f"; safe{end}(assert (<= Y_0 1))")


TOKEN = re.compile(r"\s*(;[^\n]*|[()]|<=|>=|==|!=|[<>=]|[A-Za-z_][\w-]*(?:\[[^\]]*\])?|[^\s();<>=!]+)")
GAPS = st.text("; \t\n\ufeff()<=X_01.5e-", max_size=12).map(
    lambda text: ";" + text.replace("\n", " ") + "\n" if text.strip("\ufeff \t\n") else text
)


@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_comments_and_marks_between_tokens_change_nothing(data: st.DataObject) -> None:
    """Comments that hold parentheses and numbers, blanks, and byte order marks between any two tokens."""
    written = st.one_of(
        st.sampled_from(ACCEPT).map(lambda path: path.read_text(encoding="utf-8-sig")),
        flat_properties().map(write_vnnlib1),
        tensor_properties().map(write_vnnlib2),
    )
    text = data.draw(written)
    tokens = [token for token in TOKEN.findall(text) if not token.startswith(";")]
    gaps = data.draw(st.lists(st.tuples(st.integers(0, len(tokens)), GAPS), max_size=8))
    inserted = dict(gaps)
    spread = "".join(f"{inserted.get(i, '')} {token}" for i, token in enumerate(tokens))
    assert parse_vnnlib(spread + inserted.get(len(tokens), "")) == parse_vnnlib(text)


@pytest.mark.parametrize(
    "between", ["; (* c\n", f"; {'c' * 10_000}\n", "\ufeff", "\ufeff\ufeff ", "\r", "; c\r\n"]
)
def test_every_gap_of_a_property_with_a_product(between: str, tmp_path: Path) -> None:
    """Also where the file is only looked at for its version and for products."""
    text = (
        "(vnnlib-version <2.0>) (declare-network f (declare-input X real [1]) (declare-output Y real [1]))"
        " (assert (and (<= X[0] 1.0) (>= X[0] 0.0))) (assert (<= (+ (* 2.0 X[0]) (* X[0] Y[0])) 1.0))"
    )
    tokens, wanted = TOKEN.findall(text), parse_vnnlib(text)
    for k in range(len(tokens) + 1):
        changed = f"{' '.join(tokens[:k])} {between}{' '.join(tokens[k:])}"
        assert parse_vnnlib(changed) == wanted
        path = tmp_path / "p.vnnlib"
        path.write_text(changed, encoding="utf-8", newline="")
        assert multiplying_network(path) == "f"
        assert is_version_2(changed)


def test_a_mark_inside_of_a_number_is_refused() -> None:
    with pytest.raises(UnreadableFile):
        parse_vnnlib(FLAT + UNIT + "(assert (<= Y_0 1\ufeff2))")


def test_deep_nesting() -> None:
    depth = 20_000
    formula = "(and " * depth + "(or " * depth + "(<= Y_0 " + "(- " * depth + "1.0" + ")" * (3 * depth + 1)
    assert constraints(f"(assert {formula})") == ((y({0: 1}, 1),),)
    with pytest.raises(UnreadableFile, match="never closed"):
        constraints("(" * depth)


def test_compressed_files() -> None:
    text = (FLAT + UNIT).encode()
    assert read_vnnlib(gzip.compress(text), file="p.vnnlib.gz") == read_vnnlib(text, file="p.vnnlib")


@pytest.mark.parametrize("cut", [1, 5, 11])
def test_truncated_compressed_file(cut: int) -> None:
    content = gzip.compress((FLAT + UNIT).encode())
    with pytest.raises(UnreadableFile, match=r"^p\.gz: the compressed file is truncated or damaged"):
        read_vnnlib(content[:-cut], file="p.gz")


def test_damaged_compressed_file() -> None:
    content = bytearray(gzip.compress((FLAT + UNIT).encode()))
    content[len(content) // 2] ^= 0xFF
    with pytest.raises(UnreadableFile, match="truncated or damaged"):
        read_vnnlib(bytes(content), file="p.gz")


def test_file_that_is_no_text() -> None:
    with pytest.raises(UnreadableFile) as caught:
        read_vnnlib(b"; ok\n(\xff\xfe)", file="p")
    assert str(caught.value) == "p:2:2: the file is not UTF-8 text."


@pytest.mark.parametrize("content", [b"", b"  \n", b"\xef\xbb\xbf"])
def test_empty_file(content: bytes) -> None:
    with pytest.raises(UnreadableFile, match=r"^p:1:1: the file is empty"):
        read_vnnlib(content, file="p")


def test_null_bytes() -> None:
    with pytest.raises(UnreadableFile, match=r"^p:1:1: expected '\('"):
        read_vnnlib(b"\0" * 20, file="p")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="there is no such file"):
        read_vnnlib_file(tmp_path / "none.vnnlib")


@pytest.mark.skipif(not REAL_FILES, reason="no published benchmarks beside the project")
def test_published_files_are_read_or_refused_with_a_reason() -> None:
    refused = {}
    for path in REAL_FILES[::5] + [
        p for p in REAL_FILES if "/2026/" in str(p) and "sat_relu" not in str(p)
    ]:
        try:
            assert read_vnnlib_file(path).cases
        except UnreadableFile as problem:
            place = problem.place
            refused[path.relative_to(SHARED).parts[1]] = (place.line, place.column, problem.reason)
    assert refused == {
        "monotonic_acasxu_2026": (
            30,
            9,
            "the operator '<' is between its operands; write it first: (< Y_f[3] Y_g[3]).",
        ),
    }


@pytest.mark.skipif(not REAL_FILES, reason="no published benchmarks beside the project")
@pytest.mark.parametrize("name", [f"prop_{k}" for k in range(1, 11)])
def test_both_versions_of_a_published_property_say_the_same(name: str) -> None:
    folder = SHARED / "2026" / "acasxu_2023"
    old, new = (read_vnnlib_file(folder / v / "vnnlib" / f"{name}.vnnlib.gz") for v in ("1.0", "2.0"))
    assert old.cases == new.cases


def test_products_of_variables_count_as_outputs() -> None:
    declared = "(declare-network f (declare-input X real [1]) (declare-output Y real [2]))"
    bounds = "(assert (and (>= X[0] 0.0) (<= X[0] 1.0)))"
    text = (
        f"(vnnlib-version <2.0>){declared}{bounds}(assert (<= (* (+ X[0] 2.0) (- Y[1] 3.0)) (* X[0] Y[1])))"
    )
    property = parse_vnnlib(text)
    assert property.products == ((-2, 0),)
    # (x + 2)(y − 3) <= x·y, where the products cancel
    assert property.cases[0].any_of == ((Linear(((0, Fraction(-3)),), ((1, Fraction(2)),), Fraction(6)),),)


def test_products_with_too_many_terms_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dokimos.suites.vnnlib.formulas.MAX_TERMS", 3)
    declared = "(declare-network f (declare-input X real [2]) (declare-output Y real [1]))"
    with pytest.raises(UnreadableFile, match="the product has more than 3 terms"):
        parse_vnnlib(f"(vnnlib-version <2.0>){declared}(assert (<= (* (+ X[0] X[1]) (+ X[0] Y[0])) 1.0))")
