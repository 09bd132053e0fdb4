from __future__ import annotations

from dokimos.difficulty.explain.breaking_points import best_of_style, find_unique_results
from dokimos.difficulty.explain.rows import Status, Uniqueness
from dokimos.verifiers.base import CertificateStyle
from tests.difficulty.explain.sample import seen

S, T, W = Status.SOLVED, Status.TIMEOUT, Status.WRONG


def test_only_one_solves_or_only_one_fails() -> None:
    rows = [
        *(seen("i", status, verifier=v) for v, status in (("a", S), ("b", T), ("c", W))),
        *(seen("j", status, verifier=v) for v, status in (("a", S), ("b", S), ("c", W))),
        *(seen("k", status, verifier=v) for v, status in (("a", T), ("b", T), ("c", T))),
    ]
    found = {
        (row.instance, row.subject, row.lone, row.status, row.others) for row in find_unique_results(rows)
    }
    assert found == {("i", "a", Uniqueness.SOLVED, S, 2), ("j", "c", Uniqueness.FAILED, W, 2)}


def test_only_what_all_were_run_on_counts_and_an_unchecked_answer_leaves_nobody_alone() -> None:
    rows = [
        *(seen("i", status, verifier=v) for v, status in (("a", S), ("b", T), ("c", T))),
        *(seen("j", status, verifier=v) for v, status in (("a", S), ("b", T))),
        *(seen("k", status, verifier=v) for v, status in (("a", S), ("b", Status.UNCHECKED), ("c", T))),
        *(seen("l", status, verifier=v) for v, status in (("a", Status.UNCHECKED), ("b", T), ("c", T))),
    ]
    assert [(row.instance, row.subject) for row in find_unique_results(rows)] == [("i", "a")]


def test_one_verifier_alone_stands_out_in_nothing() -> None:
    assert find_unique_results([seen("i", S), seen("j", T)]) == ()


def test_the_same_name_in_two_suites_is_two_instances() -> None:
    assert find_unique_results([seen("i", S, suite="s"), seen("i", T, suite="t", verifier="b")]) == ()


def test_a_style_does_what_its_best_verifier_does() -> None:
    dual = (CertificateStyle.DUAL,)
    rows = [
        seen("i", S, verifier="a", seconds=3, styles=dual),
        seen("i", S, verifier="b", seconds=2, styles=dual),
        seen("i", T, verifier="c", seconds=1, styles=dual),
        seen("j", T, verifier="a", styles=dual),
        seen("j", W, verifier="b", styles=dual),
        seen("k", S, verifier="d", styles=(CertificateStyle.SAT,)),
        seen("l", Status.FAILED, verifier="a", styles=dual),
        seen("l", T, verifier="b", styles=dual),
    ]
    best = best_of_style(rows, CertificateStyle.DUAL)
    assert {o.verifier for o in best} == {"dual relaxation"}
    assert {o.instance: (o.status, o.seconds) for o in best} == {"i": (S, 2), "j": (T, 1), "l": (T, 1)}
