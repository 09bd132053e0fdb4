from __future__ import annotations

from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos.judging.judged_campaign import family_rule
from dokimos.suites.answers import Answer
from dokimos.suites.folder import read_suite
from tests.difficulty.explain.sample import record


@pytest.mark.parametrize(
    ("rule", "instance", "family"),
    [
        ("network", "net__prop_3", "net"),
        ("prop_([0-9]+)", "net__prop_3", "3"),
        ("prop_[0-9]+", "net__prop_3", "prop_3"),
        ("(a)|b", "b", "b"),
        ("nowhere", "net__prop_3", None),
    ],
)
def test_a_family_by_network_or_by_a_pattern(rule: str, instance: str, family: str | None) -> None:
    run = record(instance, Answer.UNSAT)
    assert family_rule(rule)(Path("x/net.onnx.gz"), run) == (family or run.family)


def test_what_is_no_pattern_is_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match=r"does not define families: .*; write 'network', or a "):
        family_rule("(")


@pytest.mark.parametrize(
    ("rows", "families"),
    [
        (["a,p", "a,q", "b,p", "b,q"], ["a", "a", "b", "b"]),
        (["a,p", "b,p", "b,q"], ["bench"] * 3),
        (["a,p", "a,q"], ["bench"] * 2),
    ],
)
def test_a_benchmark_of_others_has_a_family_for_each_network(
    tmp_path: Path, rows: list[str], families: list[str]
) -> None:
    folder = tmp_path / "bench"
    folder.mkdir()
    pairs = [row.split(",") for row in rows]
    (folder / "instances.csv").write_text("".join(f"{n}.onnx,{p}.vnnlib,9\n" for n, p in pairs))
    assert [entry.family for entry in read_suite(folder).entries] == families
