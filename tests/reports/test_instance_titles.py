from __future__ import annotations

import pytest

from dokimos.reports.findings import in_words, instance_titles


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("inputs", 1, "1 input"),
        ("inputs", 20, "20 inputs"),
        ("classes", 1, "1 class"),
        ("boxes", 1, "1 box"),
        ("gamma", 0.001, "γ 0.001"),
        ("depth", 3, "depth 3"),
        ("last_width", 0, "last width 0"),
        ("variant", "conv-dilated", "conv-dilated"),
        ("disguise", ["permute"], "disguised"),
        ("disguise", [], ""),
    ],
)
def test_a_parameter_is_said_as_people_say_it(name: str, value: object, words: str) -> None:
    assert in_words(name, value) == words


def test_a_title_names_what_differs_and_fills_up_with_what_comes_first() -> None:
    common = {"inputs": 20, "pairs": 8, "gamma": 0.001, "epsilon": 0.25}
    titles = instance_titles(
        [
            (("s", "a"), "exclusive-pairs", common),
            (("s", "b"), "exclusive-pairs", common | {"epsilon": 0.5, "disguise": ["scale"]}),
            (("s", "c"), "ops", {"variant": "conv-pads", "margin": 0.125}),
            (("s", "d"), "foreign", {}),
        ]
    )
    assert titles == {
        ("s", "a"): "exclusive-pairs, 20 inputs, ε 0.25",
        ("s", "b"): "exclusive-pairs, 20 inputs, ε 0.5, disguised",
        ("s", "c"): "ops, conv-pads, margin 0.125",
    }
