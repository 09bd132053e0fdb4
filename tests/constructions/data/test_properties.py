"""Suites from a model and data: labels that hold, brackets, budgets, and calls that go on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dokimos
from dokimos.checker.check import check
from dokimos.constructions.data.brackets import Effort, Style, Wishes, brackets, within
from dokimos.constructions.data.catalogue import load_data
from dokimos.constructions.data.data_set import read_classifier
from dokimos.core.errors import InputError, InvalidProof
from dokimos.core.progress import ProgressUpdate
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.engine.attacks.row_target import attack_rows
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Label
from tests.checker.files import repaired
from tests.scripting import flat

make_properties = flat(dokimos.make_properties, dokimos.PropertySettings)

EASY: dict[str, Any] = {"data": "digits", "largest": 0.5, "tolerance": 0.02}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nets")
    return dokimos.train_model(
        "digits-fc", out=folder, epochs=4, settings=dokimos.TrainSettings(evaluate=1)
    ).network


@pytest.fixture(scope="module")
def twins(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("suite") / "twins"
    made = make_properties(
        "oval", model, out=out, count=3, seed=1, settings=dokimos.PropertySettings(twins=True), **EASY
    )
    assert made.labels == {"unsat": 3, "sat": 3}
    return out


def test_twins_have_a_proven_label_at_both_ends(twins: Path) -> None:
    assert dokimos.check(twins).is_proven
    suite = read_suite(twins)
    assert len({entry.network_path for entry in suite.entries}) == 1
    assert json.loads((twins / "suite.json").read_text())["recipe"]["properties"] == "oval"


def test_a_label_does_not_survive_another_network_or_a_wider_box(twins: Path) -> None:
    suite = read_suite(twins)
    for entry in suite.entries:
        truth, instance = entry.read_truth(), entry.read_instance()
        assert truth is not None
        if truth.label is Label.SAT:
            assert truth.witness is not None
            outside = replace(truth, witness=tuple(x + 2 for x in truth.witness))
            with pytest.raises(InvalidProof):
                check(instance, outside)
            continue
        twin = next(
            other
            for other in suite.entries
            if other.name.split("_eps_")[0] == entry.name.split("_eps_")[0] and other.name != entry.name
        )
        wider = replace(instance, property_file=twin.read_instance().property_file)
        with pytest.raises(InvalidProof):
            check(wider, repaired(truth, wider))


def test_oval_radii_lie_between_and_are_not_labelled(model: Path, tmp_path: Path) -> None:
    made = make_properties(
        "oval",
        model,
        out=tmp_path / "a",
        count=2,
        seed=1,
        settings=dokimos.PropertySettings(vnnlib="2"),
        **EASY,
    )
    assert made.labels == {"": 2} and made.timeout_seconds == 720
    for record in made.records:
        if record.instances:
            radius = float(record.instances[0][0].split("_eps_")[1])
            assert record.proven is not None and record.broken is not None
            assert record.proven < radius < record.broken
    text = next((tmp_path / "a" / "vnnlib").iterdir()).read_text()
    assert "(vnnlib-version <2.0>)" in text and "[1,1,8,8]" in text
    with pytest.raises(InputError, match="Between the proven and the broken radius nothing has a label"):
        make_properties(
            "oval", model, out=tmp_path / "b", settings=dokimos.PropertySettings(labelled_only=True), **EASY
        )
    one = {"count": 1, "seed": 1, "labelled_only": True}
    for weights, label in (((1.0, 0.0), "unsat"), ((0.0, 1.0), "sat")):
        made = make_properties(
            "oval",
            model,
            out=tmp_path / label,
            settings=dokimos.PropertySettings(weights=weights),
            **one,
            **EASY,
        )
        assert made.labels == {label: 1}


def _few(folder: Path) -> Path:
    """Three digits as a file of the user's."""
    few = load_data("digits").chosen([0, 1, 2])
    np.savez(folder / "digits.npz", x=few.records, y=few.labels)
    return folder / "digits.npz"


def test_degenerate_brackets_are_reported_and_not_shipped(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no attack succeeds at the largest radius"):
        make_properties(
            "oval",
            model,
            _few(tmp_path),
            out=tmp_path / "a",
            count=1,
            settings=dokimos.PropertySettings(largest=1e-4, tolerance=1e-5),
        )


def test_an_interrupted_call_goes_on_and_gives_the_same_suite(
    model: Path, twins: Path, tmp_path: Path
) -> None:
    def interrupt(update: ProgressUpdate[Any]) -> None:
        if update.done == 2:
            raise KeyboardInterrupt

    out = tmp_path / "twins"
    with pytest.raises(KeyboardInterrupt):
        make_properties(
            "oval",
            model,
            out=out,
            count=3,
            seed=1,
            settings=dokimos.PropertySettings(twins=True),
            progress=interrupt,
            **EASY,
        )
    assert not out.exists()
    make_properties(
        "oval", model, out=out, count=3, seed=1, settings=dokimos.PropertySettings(twins=True), **EASY
    )
    for path in twins.rglob("*.*"):
        assert (out / path.relative_to(twins)).read_bytes() == path.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["twins"]


def test_pgd_and_balls(model: Path, tmp_path: Path) -> None:
    small = {"restarts": 2, "steps": 10, "seed": 3}
    made = make_properties("pgd", model, "digits", out=tmp_path / "a", epsilon=0.02, count=5, **small)
    assert made.labels["sat"] == 0 and sum(made.labels.values()) == 5
    assert made.labels["unsat"] == sum(record.easy for record in made.records) > 0
    hard = make_properties(
        "pgd",
        model,
        "digits",
        out=tmp_path / "b",
        epsilon=0.05,
        count=2,
        settings=dokimos.PropertySettings(drop_easy=True),
        **small,
    )
    assert hard.labels == {"": 2}
    balls = make_properties(
        "radius",
        model,
        "digits",
        out=tmp_path / "c",
        epsilon=(0.01, 0.4),
        count=3,
        settings=dokimos.PropertySettings(labelled_only=True),
        **small,
    )
    assert balls.labels["sat"] >= 2 and balls.labels["unsat"] >= 1
    assert dokimos.check(tmp_path / "c").is_proven


def test_a_budget_chooses_seconds_and_then_records(model: Path, tmp_path: Path) -> None:
    common: dict[str, Any] = {"epsilon": 0.01, "restarts": 1, "steps": 1, "count": 4}
    data = _few(tmp_path)
    for name, budget, seconds in (("a", 6 * 3600, 300), ("b", 100, 25), ("c", 25, 10)):
        made = make_properties(
            "pgd",
            model,
            data,
            out=tmp_path / name,
            settings=dokimos.PropertySettings(budget_seconds=budget),
            **common,
        )
        assert made.timeout_seconds == seconds
        assert sum(made.labels.values()) * seconds <= budget
    with pytest.raises(InputError, match="too small for one record, whose 1 instance may take 10 s"):
        make_properties(
            "pgd",
            model,
            data,
            out=tmp_path / "d",
            settings=dokimos.PropertySettings(budget_seconds=5),
            **common,
        )


@pytest.mark.parametrize(
    ("style", "given", "hours", "count", "seconds"),
    [
        (Style.PGD, {}, 6, 72, 300),  # as in the CIFAR-10 ResNet benchmark: 48 and 24
        (Style.OVAL, {}, 6, 30, 720),  # as in OVAL21
        (Style.PGD, {"count": 10}, 6, 10, 300),
        (Style.PGD, {}, 1, 48, 75),
        (Style.PGD, {"timeout_seconds": 100.0}, 1, 36, 100),
        (Style.PGD, {"timeout_seconds": 100.0, "count": 50}, 1, 36, 100),
        (Style.PGD, {"twins": True}, 0.1, 18, 10),
    ],
)
def test_what_fits_into_a_budget(
    style: Style, given: dict[str, Any], hours: float, count: int, seconds: float
) -> None:
    twins, usual, most = given.get("twins", False), 720.0, 10
    if style is Style.PGD:
        usual, most = 300.0, 48
    wishes = Wishes(
        style=style,
        radii=(0.1,),
        count=given.get("count", most),
        timeout_seconds=given.get("timeout_seconds", usual),
        twins=twins,
    )
    fitted = within(wishes, 3600 * hours, count=given.get("count"), seconds=given.get("timeout_seconds"))
    assert (fitted.count, fitted.timeout_seconds) == (count, seconds)
    assert fitted.count * fitted.timeout_seconds * (1 + twins) <= 3600 * hours


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"style": "box"}, "Unknown style of properties 'box'; known: pgd"),
        ({"epsilon": ()}, "Give the radius"),
        ({"epsilon": -1.0}, "must be a positive number"),
        ({"weights": (1.0, 1.0)}, "their sum must be 1"),
        ({"vnnlib": "3"}, "no version 3 of VNN-LIB"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"labelled_only": True, "drop_easy": True}, "leave out `drop_easy` or `labelled_only`"),
        ({"restarts": 10**9}, "1 to 1,000 restarts"),
        ({"timeout_seconds": float("inf")}, "seconds for an instance must be above 0"),
        ({"style": "oval", "largest": 0.0}, "largest radius to try must be a positive number"),
        ({"style": "oval", "tolerance": 0.0}, "at least a 1,000,000th of it"),
        ({"style": "oval", "tolerance": 1.0}, "below the largest radius"),
        ({"data": "mnists"}, "no such file, folder or data set"),
        ({"data": "german"}, r"a record has the shape \(61,\), but digits-fc reads"),
    ],
)
def test_mistakes_get_one_sentence(
    model: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    given = {"style": "pgd", "model": model, "data": "digits", "out": tmp_path / "a", "epsilon": 0.1}
    with pytest.raises(InputError, match=message):
        make_properties(**{**given, **changes})


def test_a_witness_is_found_where_bounds_do_not_prove(model: Path) -> None:
    """The two radii of a bracket are in order, and an attack on rows keeps to each row's own box."""
    classifier, data = read_classifier(model), load_data("digits").chosen(list(range(6)))
    data = data.chosen(np.flatnonzero(classifier.is_right(data)))
    rng = np.random.default_rng(0)
    for bracket in brackets(classifier, data, Effort(largest=0.5, tolerance=0.05), rng):
        assert not bracket.degenerate and bracket.broken is not None and bracket.proven < bracket.broken
    radii = np.linspace(0.01, 0.1, len(data))
    lower, upper = classifier.boxes(data, radii)
    reached = attack_rows(
        ATTACKS["pgd"], classifier.network, lower, upper, data.labels, Budget(restarts=2, steps=5), rng
    )
    assert ((reached.points >= lower) & (reached.points <= upper)).all()


def test_other_operators_are_bounded_by_intervals(tmp_path: Path) -> None:
    """A network with tanh: what intervals prove has a certificate, the rest has none."""
    from tests.checker.files import model as onnx_file

    rng = np.random.default_rng(0)
    constants = {
        "w": rng.normal(size=(64, 8)) / 8,
        "v": rng.normal(size=(8, 10)),
        "i_flat": np.array([1, 64]),
    }
    nodes = [
        ("Reshape", ["X", "i_flat"], "f"),
        ("MatMul", ["f", "w"], "a"),
        ("Tanh", ["a"], "t"),
        ("MatMul", ["t", "v"], "Y"),
    ]
    (tmp_path / "m.onnx").write_bytes(onnx_file(nodes, constants, [1, 1, 8, 8], [1, 10]))
    digits = load_data("digits").chosen(list(range(40)))
    said = read_classifier(tmp_path / "m.onnx").scores(digits).argmax(axis=1)
    np.savez(tmp_path / "own.npz", x=digits.records, y=said)
    small = {"count": 2, "restarts": 1, "steps": 2, "labelled_only": True}
    made = make_properties(
        "pgd", tmp_path / "m.onnx", tmp_path / "own.npz", out=tmp_path / "a", epsilon=1e-3, **small
    )
    assert made.labels == {"unsat": 2} and dokimos.check(tmp_path / "a").is_proven
