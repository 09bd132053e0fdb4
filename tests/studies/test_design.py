from __future__ import annotations

import pytest

import dokimos
from dokimos.core.errors import InputError
from dokimos_studies.design import _place, _value, design, parse_profile

KNOBS = {"inputs": 24, "pairs": 8, "spread": 4}


def test_a_profile_is_found_and_the_same_call_finds_the_same() -> None:
    seen = []
    first, again = (
        design("dials", "U=0.6,G_IBP=40", knobs=KNOBS, tries=60, progress=seen.append) for _ in range(2)
    )
    assert first.is_met
    assert first == again
    assert {name: first.knobs[name] for name in KNOBS} == KNOBS
    assert seen[0].total == 60
    assert first.measured["unstable"] == pytest.approx(0.6, rel=0.1)
    assert first.measured["ibp_gap"] == pytest.approx(40, rel=0.1)


def test_what_is_found_is_what_generate_makes(tmp_path: object) -> None:
    found = design("dials", "d_eff=9", knobs=KNOBS | {"spread": 3}, tries=30, seed=5)
    assert found.is_met
    made = dokimos.generate(f"{tmp_path}/made", family="dials", knobs=found.knobs, seed=5)
    robust = next(e for e in made.suite.entries if (t := e.read_truth()) and t.label.value == "unsat")
    profiled = dokimos.profile(robust.network_path, robust.property_path, out=f"{tmp_path}/profiles")
    (outcome,) = profiled.outcomes
    assert outcome.profile is not None
    component = outcome.profile.components["gradient_dimension"]
    assert component.value == found.measured["gradient_dimension"]


def test_the_nearest_is_said_where_there_is_none() -> None:
    found = design("dials", "d_eff=500", knobs={**KNOBS, "directions": 3}, tries=8)
    assert not found.is_met
    assert found.tries == 8
    assert "d_eff" in found.comparison
    assert "%" in found.comparison


@pytest.mark.parametrize(
    ("profile", "within", "says"),
    [
        ("Q=1", "10%", "Unknown component"),
        ("u=0.5", "10%", "did you mean 'U'"),
        ("U", "10%", "NAME=VALUE"),
        ("U=much", "10%", "must be a number"),
        ("U=nan", "10%", "must be a number"),
        ("U=1.5", "10%", r"in \[0, 1\]"),
        ("G_IBP=-2", "10%", "at least 0"),
        ("A_tau=8", "10%", "logarithm of a count of at most 1000"),
        ("M=0", "10%", "above 0"),
        ("U=0.5,unstable=0.4", "10%", "twice"),
        ("U=0.5", "200%", "--within"),
        ("U=0.5", "-1", "--within"),
    ],
)
def test_bad_profiles_are_refused_in_one_sentence(profile: str, within: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        parse_profile(profile, within)
    assert "\n" not in str(error.value)


def test_nothing_is_off_by_minus_zero() -> None:
    wanted = parse_profile("G_IBP=1000,U=0.5", "10%")
    assert wanted.compared({"ibp_gap": 999.9, "unstable": 0.45}) == "G_IBP 999.9 (+0.0 %), U 0.45 (-10.0 %)"


def test_components_go_by_symbol_or_name() -> None:
    wanted = parse_profile("M=1, A_tau=2, d_eff=3, ibp_gap=4, G_CROWN=5", "0.2")
    assert list(wanted.values) == ["margin", "regions", "gradient_dimension", "ibp_gap", "crown_gap"]
    assert wanted.within == 0.2
    assert wanted.is_met_by(dict(wanted.values))
    assert not wanted.is_met_by({**wanted.values, "margin": 1.3})
    assert not wanted.is_met_by({**wanted.values, "margin": None})


def test_places_and_values_are_each_other_s_inverse() -> None:
    for family in ("dials", "exclusive-pairs", "convex-corners", "contractive-cnn"):
        for knob in dokimos.find_family(family).knobs:
            if not knob.options:
                for place in (0.0, 0.3, 1.0, _place(knob, knob.default)):
                    value = _value(knob, place)
                    assert knob.least <= value <= knob.most
                    assert _value(knob, _place(knob, value)) == pytest.approx(value, rel=1e-3)
                assert _value(knob, _place(knob, knob.default)) == pytest.approx(knob.default, rel=1e-3)
