"""Arguments that make no sense are refused with one sentence, before anything is done."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dokimos
from dokimos.api.arguments import checked

#: A function that is given arguments of the wrong type, and what is said of them.
WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: dokimos.check(5), "suite must be text, a path or a Suite, not 5."),
    (lambda: dokimos.check("tiny", jobs="2"), "jobs must be a whole number or None, not '2'."),
    (lambda: dokimos.check("tiny", jobs=True), "jobs must be a whole number or None, not True."),
    (lambda: dokimos.check("tiny", jobs=0), "The number of jobs must be at least 1, not 0."),
    (lambda: dokimos.generate("x", family=3), "family must be text or None, not 3."),
    (lambda: dokimos.generate("x", family="dials", seed=-1), "The seed must be at least 0, not -1."),
    (lambda: dokimos.generate("x", family="dials", knobs=[1]), "knobs must be a dictionary or None"),
    (lambda: dokimos.generate(None, family="dials"), "out must be text or a path, not None."),
    (lambda: dokimos.run("tiny", None, "x"), "or a list of texts or Verifier"),
    (lambda: dokimos.run("tiny", "reference", "x", timeout_seconds="60"), "must be a number or None"),
    (lambda: dokimos.run("tiny", "reference", "x", progress=5), "progress must be a function"),
    (lambda: dokimos.judge({"campaign": 1}), "or a list of texts or paths, not {'campaign': 1}."),
    (lambda: dokimos.judge("campaign", rules="exat"), "Unknown rule set 'exat'; did you mean 'exact'?"),
    (lambda: dokimos.hide("x", "lock"), "settings must be a HideSettings or None, not 'lock'."),
    (lambda: dokimos.evaluate(b"", ["a"]), "point must be a list of numbers or Fraction, not ['a']."),
    (lambda: dokimos.audit("tiny", rules=["exat"]), "Unknown rule set 'exat'"),
    (lambda: dokimos.init_config(rules=["exat"]), "Unknown rule set 'exat'"),
    (lambda: dokimos.watch("campaign", every_seconds=-1), "a positive number of seconds, not -1."),
    (lambda: dokimos.check_proofs([]), "There is nothing to check"),
    (lambda: dokimos.replay_law([]), "There is nothing to replay"),
    (lambda: dokimos.make_properties("radius", "m", "digits", "x", epsilon=1, vnnlib="3"), "no version 3"),
    (lambda: dokimos.export_law("older.law", out="x", vnnlib="3"), "no version 3"),
]


@pytest.mark.parametrize(("call", "words"), WRONG)
def test_one_sentence_says_what_is_wrong(workplace: Path, call: Callable[[], object], words: str) -> None:
    before = set(workplace.iterdir())
    with pytest.raises(dokimos.DokimosError) as caught:
        call()
    assert words in str(caught.value)
    assert set(workplace.iterdir()) == before


def test_a_name_that_no_argument_has_is_an_error_of_the_language() -> None:
    with pytest.raises(TypeError, match=r"check\(\) got an unexpected keyword argument 'job'"):
        dokimos.check("tiny", job=2)


def test_functions_may_be_sent_to_other_processes() -> None:
    assert pickle.loads(pickle.dumps(dokimos.check)) is dokimos.check


def taken(
    several: Sequence[str] = (),
    either: str | Sequence[str | Path] = "",
    number: float | None = None,
    pair: tuple[float, float] = (0, 1),
    table: Mapping[str, Any] | None = None,
    unknown: Nowhere[int] | None = None,  # noqa: F821
) -> tuple[Any, ...]:
    return several, either, number, pair, table, unknown


def test_arguments_arrive_as_their_annotations_say() -> None:
    call = checked(taken)
    assert call("a")[0] == ("a",)
    assert call(["a", "b"])[0] == ("a", "b")
    assert call(each for each in "ab")[0] == ("a", "b")
    assert call(either="a")[1] == "a"
    assert call(either=Path("a"))[1] == (Path("a"),)
    assert call(number=np.float32(0.5))[2] == 0.5
    assert call(number=Fraction(1, 2))[2] == Fraction(1, 2)
    assert call(pair=[2, 3])[3] == (2, 3)
    assert call(unknown=object())[5] is not None
    for wrong in ({"pair": (1,)}, {"number": True}, {"several": b"a"}, {"several": [1]}, {"table": [1]}):
        with pytest.raises(dokimos.DokimosError, match=r"^dokimos.taken: \w+ must be"):
            call(**wrong)


def test_points_are_numbers_of_any_type(workplace: Path) -> None:
    entry = dokimos.read_suite("tiny").entries[0]
    network = dokimos.read_network(entry.network_path)
    third = [Fraction(1, 3)] * 20
    assert dokimos.evaluate(entry.network_path, third) == dokimos.evaluate(network, third)
    for half in ([0.5] * 20, [Fraction(1, 2)] * 20, np.full(20, 0.5, np.float32), ["0.5"] * 20):
        replayed = dokimos.replay(entry.network_path, entry.property_path, half)
        assert replayed.replay.exact_outputs == dokimos.evaluate(network, [0.5] * 20).lower
    with pytest.raises(dokimos.DokimosError, match="must be finite"):
        dokimos.evaluate(network, [float("nan")] * 20)


def test_a_suite_is_gone_through_and_counted(workplace: Path) -> None:
    suite = dokimos.read_suite("tiny")
    entries: Iterator[Any] = iter(suite)
    assert tuple(entries) == suite.entries and len(suite) == 2


def test_a_path_is_taken_wherever_a_file_may_be_named(workplace: Path) -> None:
    law, people = Path("older.law"), workplace / "people.py"
    dokimos.new_law("monotone", feature="age", out=law)
    assert not dokimos.lint_law(law, domain=people)[0].is_wrong
    settings = dokimos.LawSettings(budget=10)
    assert not dokimos.test_law(law, domain=people, settings=settings, out="found").is_violated
    assert not dokimos.replay_law(Path("found/older.json"), domain=people, allow_code=True)[0].is_violated
    assert dokimos.fuzz_domain(people, Path("pool.json"), size=2).records == 2
    assert dokimos.init_config(Path("d.toml"), suites=Path("tiny"), verifiers="reference").suites == (
        "tiny",
    )
