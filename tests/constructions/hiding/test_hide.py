"""Suites with hidden counterexamples: what is proven, what is claimed, and going on after a kill."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

import dokimos
from dokimos.constructions.hiding import trained_tier
from dokimos.constructions.hiding.plants import (
    ARCHITECTURES,
    HideSettings,
    draw_network,
    draw_points,
    parse_shape,
    soundness_settings,
)
from dokimos.constructions.hiding.trained_tier import FILTER_ATTACKS, train
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.folder import HIDE_REPORT, read_suite

TINY = HideSettings(architecture="mlp4", input_shape=(10,), points=1, scale=0.04)


@pytest.fixture(scope="module")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hide") / "trio"
    dokimos.hide(out=folder, settings=replace(TINY, architecture="cnn1", input_shape=(1, 5, 5)))
    return folder


def test_the_lock_tier_makes_three_proven_siblings(trio: Path) -> None:
    checked = dokimos.check(trio)
    assert checked.is_proven
    origins = [json.loads(path.read_text()) for path in trio.glob("truth/hidden-lock-*.json")]
    kinds = {one["origin"]["parameters"]["lock"]: one["label"] for one in origins}
    assert kinds == {"none": "unsat", "shut": "unsat", "open": "sat"}
    assert "at most 2^-75 of the box" in (trio / HIDE_REPORT).read_text()
    (point,) = json.loads((trio / HIDE_REPORT).read_text())["points"]
    assert point["base_proven"] and point["proven_enlarged"]
    properties = {path.read_bytes() for path in trio.glob("vnnlib/*")}
    assert len(properties) == 1


def test_the_same_settings_are_not_made_again_and_others_are_refused(trio: Path) -> None:
    settings = replace(TINY, architecture="cnn1", input_shape=(1, 5, 5))
    assert dokimos.hide(out=trio, settings=settings).was_there
    with pytest.raises(InputError, match="holds something else"):
        dokimos.hide(out=trio, settings=replace(settings, seed=1))


def test_a_lock_is_grafted_onto_a_network_of_the_user(tmp_path: Path) -> None:
    """Its class wins by a constant: the base is proven, and so are all three siblings."""
    rng = np.random.default_rng(0)
    weight = (rng.integers(-8, 9, size=(3, 30)) / 64).tolist()
    (tmp_path / "net.onnx").write_bytes(ModelBuilder([30]).affine(weight, [9, 0, 0]).build(3))
    np.savez(tmp_path / "x.npz", x=rng.uniform(0, 1, size=(2, 30)).astype(np.float32))
    own = {"model": str(tmp_path / "net.onnx"), "data": str(tmp_path / "x.npz")}
    made = dokimos.hide(out=tmp_path / "out", settings=HideSettings(points=2, epsilon=0.05, **own))
    assert len(made.suite.entries) == 6
    assert dokimos.check(tmp_path / "out").is_proven
    assert [one["base_proven"] for one in made.report["points"]] == [True, True]
    published = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [path.name for path in published if str(tmp_path).encode() in path.read_bytes()]


def test_a_base_that_is_not_proven_claims_no_volume(tmp_path: Path) -> None:
    weight = np.random.default_rng(0).integers(-8, 9, size=(2, 30)) / 8
    (tmp_path / "net.onnx").write_bytes(ModelBuilder([30]).affine(weight.tolist(), [0, 0]).build(2))
    np.save(tmp_path / "x.npy", np.random.default_rng(1).uniform(0, 1, size=(1, 30)))
    own = {"model": str(tmp_path / "net.onnx"), "data": str(tmp_path / "x.npy")}
    made = dokimos.hide(
        out=tmp_path / "out", settings=HideSettings(points=1, epsilon=1.0, prove_seconds=1, **own)
    )
    labels = sorted(str(t and t.label.value) for e in made.suite.entries for t in [e.read_truth()])
    assert labels == ["None", "None", "sat"]
    assert "no volume is claimed" in (tmp_path / "out" / HIDE_REPORT).read_text()


def test_training_goes_on_after_a_kill_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    settings = replace(TINY, tier="trained", epochs=14)
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    whole.mkdir()
    halves.mkdir()
    expected = train(settings, whole, lambda *_: None)

    def killed(epoch: int, _total: int, _note: str) -> None:
        if epoch == 12:  # the last checkpoint is that of epoch 10
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(settings, halves, killed)
    seen: list[int] = []
    resumed = train(settings, halves, lambda epoch, *_: seen.append(epoch))
    assert seen[0] == 11
    assert resumed.file == expected.file


def test_what_is_shipped_of_the_trained_tier_is_proven_or_has_no_label(tmp_path: Path) -> None:
    settings = replace(TINY, tier="trained", epochs=30, prove_seconds=0.5, filter="none", points=2)
    made = dokimos.hide(out=tmp_path / "out", settings=settings)
    assert made.report["planted"] == 2
    assert made.report["hidden"] == made.report["proven"]
    truths = [entry.read_truth() for entry in made.suite.entries]
    assert len(truths) == 2 + made.report["hidden"]
    checked = dokimos.check(tmp_path / "out")
    assert checked.is_proven
    assert len(checked.unlabelled) == truths.count(None)
    for one in made.report["points"]:
        if one["proven"] and one["distance_at_most"] is not None:
            assert one["distance_at_least"] < one["distance_at_most"]


def test_unsat_that_is_not_proven_on_the_larger_box_is_shipped_without_a_label(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(
        TINY, tier="trained", epochs=1, prove_seconds=0.5, filter="none", epsilon=0.1, seed=5
    )
    trained = train(settings, tmp_path, lambda *_: None)
    monkeypatch.setattr(trained_tier, "train", lambda *_: trained)
    made = dokimos.hide(out=tmp_path / "both", settings=settings)
    assert sorted(t.label.value for e in made.suite.entries if (t := e.read_truth())) == ["sat", "unsat"]
    monkeypatch.setattr(trained_tier, "is_proven_on_enlarged", lambda _: False)
    made = dokimos.hide(out=tmp_path / "one", settings=settings)
    assert [t.label.value for e in made.suite.entries if (t := e.read_truth())] == ["sat"]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_is_read(name: str) -> None:
    shape = (10,) if name.startswith("mlp") else (1, 5, 5)
    file = draw_network(name, shape, scale=0.05, rng=np.random.default_rng(0))
    network = read_onnx(file)
    assert (network.input_size, network.output_size) == (int(np.prod(shape)), 2)
    assert any(constant.startswith("weight_") for constant in network.constants)


def test_points_lie_apart_and_plants_inside() -> None:
    points = draw_points((10,), epsilon=0.5, planted=3, regular=3, rng=np.random.default_rng(0))
    for k, one in enumerate(points):
        assert (one.plant is not None) == (k < 3)
        if one.plant is not None:
            assert all(abs(x - c) < one.radius for x, c in zip(one.plant, one.centre, strict=True))
        for other in points[:k]:
            apart = max(abs(a - b) for a, b in zip(one.centre, other.centre, strict=True))
            assert apart > 2 * one.radius


def test_the_recipe_of_the_paper_is_that_of_its_code() -> None:
    from dokimos.constructions.hiding.trained_tier import training_options

    paper = training_options(HideSettings(tier="trained", recipe="paper"))
    assert (paper.epochs, paper.restarts, paper.steps, paper.updates, paper.window) == (
        5000,
        150,
        150,
        1,
        300,
    )
    assert (paper.lead, paper.learning_rate, paper.step_sizes, paper.clip) == (0.01, 1e-3, (0.1,), 10.0)
    assert not (paper.shrinks or paper.keeps_all or paper.escalates or paper.left_out)
    assert HideSettings(recipe="paper").plants_at_corners


def test_what_is_given_takes_the_place_of_the_recipe() -> None:
    from dokimos.constructions.hiding.trained_tier import training_options

    given = HideSettings(
        recipe="paper", epochs=7, restarts=2, steps=3, window=5, lead=0.02, learning_rate=1e-4
    )
    options = training_options(given)
    assert (options.epochs, options.restarts, options.steps, options.window) == (7, 2, 3, 5)
    assert (options.lead, options.learning_rate) == (0.02, 1e-4)
    assert training_options(HideSettings()).learning_rate == 4e-4


def test_a_corner_is_a_corner() -> None:
    rng = np.random.default_rng(0)
    points = draw_points((1, 5, 5), epsilon=0.2, planted=3, regular=1, rng=rng, corner=True)
    for point in points[:3]:
        assert point.plant is not None
        assert {abs(a - b) for a, b in zip(point.plant, point.centre, strict=True)} == {point.radius}
    assert points[3].plant is None


def test_the_recipe_of_the_paper_trains(tmp_path: Path) -> None:
    """A few epochs on a tiny network: the window has one perturbation of each point for every epoch."""
    from dokimos.constructions.hiding.plants import draw_network
    from dokimos.constructions.hiding.trained_tier import training_options
    from dokimos.constructions.hiding.trainer import HidingTrainer

    rng = np.random.default_rng(0)
    network = draw_network("mlp4", (10,), scale=0.02, rng=rng)
    points = draw_points((10,), epsilon=0.2, planted=2, regular=1, rng=rng, corner=True)
    settings = HideSettings(recipe="paper", epochs=4, restarts=3, steps=2)
    trainer = HidingTrainer(network, points, training_options(settings), 0)
    while not trainer.is_over:
        trainer.step()
    assert trainer.epoch == 4
    assert trainer.escalation == 1
    assert [len(window) for window in trainer._windows] == [5, 5, 5]


def test_there_are_26_settings_and_the_filter_of_the_paper() -> None:
    assert len(soundness_settings(replace(TINY, tier="trained"))) == 26
    assert len(soundness_settings(replace(TINY, tier="lock"))) == 24  # the transformer has no lock tier
    assert ("pgd", 1000, 5000) in FILTER_ATTACKS["paper"]


def test_a_setting_of_soundness_bench_is_made_with_locks(tmp_path: Path) -> None:
    settings = HideSettings(points=2, scale=0.05)
    (row,) = dokimos.hide_soundness(settings, out=tmp_path, only=["mlp4-10-0.5"])
    assert (row.planted, row.proven, row.hidden) == (2, 2, None)
    labels = [e.read_truth().label.value for e in read_suite(tmp_path / row.name).entries]
    assert sorted(labels) == 2 * ["sat"] + 4 * ["unsat"]
    with pytest.raises(InputError, match="vit"):
        dokimos.hide_soundness(settings, out=tmp_path, only=["vit-1x5x5-0.2"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tier": "magic"}, "no tier 'magic'"),
        ({"filter": "x"}, "no filter 'x'"),
        ({"model": "a.onnx"}, "both `model` and `data`"),
        ({"points": 0}, "between 1 and 1000"),
        ({"bits": 0}, "between 1 and 2000 bits"),
        ({"seed": -1}, "0 or more"),
    ],
)
def test_settings_that_do_not_fit_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        replace(TINY, **options)  # type: ignore[arg-type]


def test_shapes_are_read() -> None:
    assert parse_shape("3x5x5") == (3, 5, 5)
    for text in ("", "axb", "0x3", "1x2x3x4"):
        with pytest.raises(InputError, match="not an input shape"):
            parse_shape(text)


def test_a_transformer_has_no_certified_base(tmp_path: Path) -> None:
    settings = replace(TINY, architecture="vit", input_shape=(1, 3, 3))
    with pytest.raises(ConstructionFailed, match="the `tier` trained"):
        dokimos.hide(out=tmp_path / "out", settings=settings)
