"""What the shipped suites promise, held against what they hold."""

from __future__ import annotations

import csv
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest

from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.draft import make_knobs
from dokimos.constructions.recipes import Draw, shipped_recipe, with_seeds
from dokimos.judging.checked_entry import check_entry
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.instance import Label, Semantics, Truth
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.making import shipped_once
from tests.shared import SHARED

#: Families with a suite of their own, or of a size of their own.
APART = {
    *(
        "dials",
        "disjuncts",
        "message-passing",
        "ops",
        "orders",
        "parity-lock",
        "precision",
        "quantised",
        "relaxations",
        "residual",
        "scale",
        "specs",
        "splits",
        "two-copies",
    ),
    "wrapped-ops",
}
FAMILIES = set(CONSTRUCTIONS) - APART


def entries_of(name: str, run_folder: Path) -> list[tuple[SuiteEntry, Truth]]:
    suite = shipped_once(run_folder, name)
    assert len(suite.entries) == shipped_recipe(name).size
    found = [(entry, truth) for entry in suite.entries if (truth := entry.read_truth()) is not None]
    assert len(found) == len(suite.entries)
    return found


def test_quick_has_every_family_with_both_labels_proven_in_float32(
    run_folder: Path,
) -> None:
    entries = entries_of("quick", run_folder)
    assert len(entries) < 60
    families = FAMILIES | {"disjuncts", "parity-lock", "relaxations", "specs", "wrapped-ops"}
    wanted = {(family, label) for family in families for label in Label}
    found = {(entry.family, truth.label) for entry, truth in entries}
    assert found == {*wanted, ("splits", Label.SAT), ("scale", Label.SAT)}
    over_the_reals = [truth.claims for _, truth in entries if not truth.claims[Semantics.FLOAT32].proven]
    margins = sorted(claims[Semantics.REAL].margin or 0 for claims in over_the_reals)
    assert margins[:-1] == [0, 0], "two by equality alone"
    assert 0 < margins[-1] < 1e-6, "and one that is robust by less than tools tolerate"
    for entry, _ in entries:
        assert check_entry(entry).problem == ""


def test_thorough_has_all_that_the_suites_about_answers_have() -> None:
    """Each once, with the labels that any of them asks for."""
    thorough = shipped_recipe("thorough")
    assert len(thorough.draws) == len({key_of(draw) for draw in thorough.draws})
    labels = {key_of(draw): set(draw.labels) for draw in thorough.draws}
    for name in ("quick", "edge", "disjuncts", "scale", "specs", "relaxations", "wrapped-ops", "splits"):
        for draw in with_seeds(shipped_recipe(name)).draws:
            assert set(draw.labels) <= labels[key_of(draw)], name


def key_of(draw: Draw) -> tuple[str, object, int | None]:
    """What makes an instance what it is, but for its label."""
    knobs = make_knobs(CONSTRUCTIONS[draw.family].knobs_class, draw.knobs, family=draw.family)
    return draw.family, knobs, draw.seed


def test_counterexamples_of_quick_lie_in_any_disjunct(run_folder: Path) -> None:
    places = []
    for entry, truth in entries_of("quick", run_folder):
        instance = entry.read_instance()
        question = read_vnnlib(instance.property_file, file=entry.name)
        if truth.witness is None or len(question.cases) > 1 or len(question.cases[0].any_of) < 2:
            continue
        outputs = evaluate(read_onnx(instance.network_file), truth.witness).upper
        held = [all(c.holds(truth.witness, outputs) for c in way) for way in question.cases[0].any_of]
        assert any(held)
        if sum(held) == 1:
            places.append(held.index(True))
    assert len(places) >= 9
    assert 0 < places.count(0) < len(places) / 2


#: How many instances of each family Table 5 of the paper lists.
PUBLISHED = {
    "constant-on-box": 5,
    "contractive-cnn": 50,
    "convex-corners": 22,
    "exact-radius": 31,
    "exclusive-pairs": 14,
    "linear-attention": 18,
    "paired-bias": 46,
    "polynomial": 22,
    "softmax-attention": 17,
}


@pytest.mark.parametrize("name", ["veristress", "veristress-wide"])
def test_veristress_has_as_many_of_each_family_as_published(name: str) -> None:
    draws = with_seeds(shipped_recipe(name)).draws
    assert Counter(draw.family for draw in draws) == PUBLISHED
    assert {draw.labels for draw in draws} == {("unsat",)}
    assert len({(draw.family, draw.seed, *sorted(draw.knobs.items())) for draw in draws}) == 225
    for draw in draws:
        make_knobs(CONSTRUCTIONS[draw.family].knobs_class, draw.knobs, family=draw.family)


def test_the_wide_grid_repeats_nothing() -> None:
    draws = with_seeds(shipped_recipe("veristress-wide")).draws
    assert len({(draw.family, *sorted(draw.knobs.items())) for draw in draws}) == 225
    networks = Counter(draw.seed for draw in draws if draw.family == "exact-radius")
    assert sorted(networks.values()) == [1, 6, 6, 6, 6, 6]


#: For each published constructor its family here, and each published parameter with the knob that it is.
KNOBS_OF = {
    "mlp_relu.meap": (
        "exclusive-pairs",
        {
            "num_pairs": "pairs",
            "epsilon": "epsilon",
            "gamma": "gamma",
            "input_dim": "inputs",
            "num_classes": "classes",
        },
    ),
    "mlp_relu.milp.exact_radius": (
        "exact-radius",
        {
            "h1": "width",
            "h2": "last_width",
            "epsilon_frac": "slack",
            "input_dim": "inputs",
            "num_outputs": "classes",
        },
    ),
    "mlp_relu.corners": (
        "convex-corners",
        {
            "num_hinges": "hinges",
            "hinge_l1": "scale",
            "epsilon": "epsilon",
            "active_dim": "block",
            "input_dim": "inputs",
            "num_outputs": "classes",
        },
    ),
    "mlp_relu.embedded_projection": (
        "constant-on-box",
        {
            "num_layers": "depth",
            "width": "width",
            "epsilon": "epsilon",
            "input_dim": "inputs",
            "output_dim": "classes",
        },
    ),
    "cnn.deep_contractive_cnn": (
        "contractive-cnn",
        {
            "depth": "depth",
            "channels": "channels",
            "contraction_rate": "contraction",
            "margin": "slack",
            "bias_instability_frac": "unstable",
            "epsilon": "epsilon",
            "height": "size",
            "num_classes": "classes",
        },
    ),
    "cnn.cnn_paired_bias": (
        "paired-bias",
        {
            "num_pairs": "pairs",
            "margin": "margin",
            "delta": "gap",
            "num_backbone_layers": "depth",
            "height": "size",
            "in_channels": "colours",
            "backbone_channels": "channels",
            "epsilon": "epsilon",
            "num_classes": "classes",
        },
    ),
    "attention.linear_dominance": (
        "linear-attention",
        {
            "n": "tokens",
            "d": "width",
            "d_v": "value_width",
            "epsilon": "epsilon",
            "margin_factor": "slack",
            "gate_scale": "gate",
            "noise_scale": "noise",
            "num_classes": "classes",
        },
    ),
    "attention.fixed_pattern": (
        "softmax-attention",
        {
            "n": "tokens",
            "d": "width",
            "d_v": "value_width",
            "alpha": "alpha",
            "epsilon": "epsilon",
            "margin_slack": "slack",
            "num_classes": "classes",
        },
    ),
    "polynomial.algebraic_boundary": (
        "polynomial",
        {"degree": "degree", "hidden_dim": "width", "input_dim": "inputs", "delta_prime": "buffer"},
    ),
}
COMBINATIONS = SHARED.parent / "veristressgt" / "combinations.csv"


@pytest.mark.skipif(not COMBINATIONS.exists(), reason="the published combinations are not here")
def test_veristress_is_the_published_combinations() -> None:
    published: Counter[tuple[object, ...]] = Counter()
    with COMBINATIONS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            family, names = KNOBS_OF[row["construction"]]
            # One row has a typing error in the name of a parameter, which then keeps its default.
            given = {"bias_instability_frac": 0.4, **json.loads(row["parameters"])}
            values = {knob: float(given[name]) for name, knob in names.items()}
            if "gap" in values:
                values["gap"] = 2 * values["gap"]
            published[(family, *sorted(values.items()))] += 1
    ours: Counter[tuple[object, ...]] = Counter()
    for draw in with_seeds(shipped_recipe("veristress")).draws:
        knobs = asdict(make_knobs(CONSTRUCTIONS[draw.family].knobs_class, draw.knobs, family=draw.family))
        if draw.family == "exact-radius":
            knobs["last_width"] = knobs["last_width"] or knobs["width"]
        if draw.family == "polynomial":
            assert knobs["epsilon"] + knobs["buffer"] == pytest.approx(0.02)
        names = dict(KNOBS_OF.values())[draw.family]
        ours[(draw.family, *sorted((knob, float(knobs[knob])) for knob in names.values()))] += 1
    assert ours == published


@pytest.mark.slow
def test_veristress_has_225_distinct_instances_each_proven(
    run_folder: Path,
) -> None:
    entries = entries_of("veristress", run_folder)
    assert Counter(entry.family for entry, _ in entries) == PUBLISHED
    assert len({(entry.network_sha256, entry.property_sha256) for entry, _ in entries}) == 225
    assert all(check_entry(entry).is_proven for entry, _ in entries)


@pytest.mark.slow
def test_edge_is_proven_for_the_reals_only(run_folder: Path) -> None:
    entries = entries_of("edge", run_folder)
    assert {entry.family for entry, _ in entries} == FAMILIES | {"disjuncts"}
    for _, truth in entries:
        assert truth.claims[Semantics.REAL].proven
        assert truth.label is Label.SAT or not truth.claims[Semantics.FLOAT32].proven


@pytest.mark.slow
def test_twins_are_all_violated(run_folder: Path) -> None:
    entries = entries_of("twins", run_folder)
    assert {entry.family for entry, _ in entries} == FAMILIES
    assert {truth.label for _, truth in entries} == {Label.SAT}


@pytest.mark.slow
def test_ladder_climbs_every_family(run_folder: Path) -> None:
    entries = entries_of("ladder", run_folder)
    assert {entry.family for entry, _ in entries} == FAMILIES
    assert {truth.label for _, truth in entries} == {Label.UNSAT}


@pytest.mark.parametrize(("name", "count"), [("scale", 30), ("disjuncts", 66), ("ops", 120)])
def test_a_suite_apart_holds_both_labels_of_its_family(run_folder: Path, name: str, count: int) -> None:
    entries = entries_of(name, run_folder)
    assert len(entries) == count
    assert {(entry.family, truth.label) for entry, truth in entries} == {(name, label) for label in Label}
    for entry, truth in entries:
        assert truth.claims[Semantics.FLOAT32].proven
        assert check_entry(entry).problem == ""
