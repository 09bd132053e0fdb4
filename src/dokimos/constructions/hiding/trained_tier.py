"""The trained tier: one network, trained to hide a counterexample near each planted point.

A planted point is shipped as `sat` once its counterexample is proven on the exported file and the filter's
attacks fail to find one. A regular point is shipped as `unsat` if that is proven, also on a box that is
larger by 1e-4, as `sat` if a counterexample is found, and without a label otherwise: it is never assumed to
be `unsat`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from dokimos.constructions.draft import Draft, Origin, ball, instance_of
from dokimos.constructions.hiding.labelled import proven
from dokimos.constructions.hiding.plants import HideSettings, PlantedPoint, draw_network, draw_points
from dokimos.constructions.locked_networks import is_proven_on_enlarged
from dokimos.core.errors import InputError, InvalidProof
from dokimos.core.files import read_whole, write_whole
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.engine.differentiable import one_thread, to_torch
from dokimos.engine.direct import by_intervals, real_outputs
from dokimos.engine.label import find_label
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided
from dokimos.suites.instance import Certificate, Label, LabelledInstance
from dokimos.suites.vnnlib.model import Point, Property
from dokimos.suites.vnnlib.violation import violation_at

if TYPE_CHECKING:
    from dokimos.constructions.hiding.trainer import TrainingOptions

CHECKPOINT = "checkpoint.pt"
CHECKPOINT_EVERY = 10
#: The attacks of each filter, with restarts and steps.
FILTER_ATTACKS: Mapping[str, tuple[tuple[str, int, int], ...]] = {
    "none": (),
    "quick": (("pgd", 100, 200),),
    "paper": (
        ("pgd", 1000, 5000),
        ("apgd-ce", 100, 100),
        ("apgd-dlr", 100, 100),
        ("fab", 100, 100),
        ("square", 100, 5000),
    ),
}


@dataclass(frozen=True)
class TrainedNetwork:
    """The file, its points, and how training ended."""

    file: bytes
    points: tuple[PlantedPoint, ...]
    epochs: int
    hidden_in_training: int


@dataclass(frozen=True)
class PlantOutcome:
    """The result for one planted point: whether it is proven, which attack of the filter found a
    counterexample, and bounds on its distance from the decision boundary."""

    number: int
    is_proven: bool
    found_by: str
    margin: float | None
    distance_above: float | None
    distance_below: float | None

    @property
    def is_hidden(self) -> bool:
        """Whether it is proven, and no attack of the filter found a counterexample."""
        return self.is_proven and not self.found_by


Progress = Callable[[int, int, str], None]


def train(settings: HideSettings, building: Path, progress: Progress) -> TrainedNetwork:
    """Train, or continue where training stopped; a checkpoint is kept in `building`."""
    from dokimos.constructions.hiding.trainer import HidingTrainer

    rng = np.random.default_rng(settings.seed)
    network = draw_network(settings.architecture, settings.input_shape, scale=settings.scale, rng=rng)
    points = draw_points(
        settings.input_shape,
        epsilon=settings.epsilon,
        planted=settings.points,
        regular=settings.points,
        rng=rng,
        corner=settings.plants_at_corners,
    )
    options = training_options(settings)
    trainer = HidingTrainer(network, points, options, settings.seed)
    kept = building / CHECKPOINT
    if kept.exists():
        trainer.resume(read_whole(kept))
    began = time.process_time()
    while not trainer.is_over:
        now = trainer.step()
        hidden = "?" if now.hidden is None else now.hidden
        note = f"hidden {hidden} of {now.planted}, loss {now.loss:.3g}, attacks found {now.found}"
        used = f"CPU {time.process_time() - began:.0f} s"
        progress(now.epoch, options.epochs, f"{note}, attack length ×{now.escalation}, {used}")
        if now.epoch % CHECKPOINT_EVERY == 0:
            write_whole(kept, trainer.checkpoint(), what="the checkpoint")
    write_whole(kept, trainer.checkpoint(), what="the checkpoint")
    return TrainedNetwork(trainer.export(), points, trainer.epoch, max(trainer.hidden, 0))


def training_options(settings: HideSettings) -> TrainingOptions:
    """The options of the recipe, with what is given in their place."""
    from dokimos.constructions.hiding.trainer import TRAINING

    given: dict[str, Any] = {
        "epochs": settings.epochs,
        "restarts": settings.restarts,
        "steps": settings.steps,
        "window": settings.window,
        "lead": settings.lead,
        "learning_rate": settings.learning_rate,
    }
    return replace(
        TRAINING[settings.recipe],
        two_sided=settings.two_sided,
        sliding=settings.sliding,
        **{name: value for name, value in given.items() if value is not None},
    )


def certify(
    settings: HideSettings, trained: TrainedNetwork, progress: Progress
) -> tuple[list[LabelledInstance], list[PlantOutcome]]:
    """The instances that are shipped, and the result for each planted point."""
    instances, outcomes = [], []
    for number, point in enumerate(trained.points):
        about = {"architecture": settings.architecture, "point": number}
        family = f"soundness-{settings.architecture}"
        origin = Origin(family, about, settings.seed, settings.timeout_seconds)
        if point.plant is None:
            instances.append(_regular(trained.file, point, origin, settings.prove_seconds))
            note = f"regular point: {_word(instances[-1])}"
        else:
            outcome, made = _planted(trained.file, point, number, origin, settings.filter)
            outcomes.append(outcome)
            instances += [made] if made is not None and outcome.is_hidden else []
            kept = "proven" if settings.filter == "none" else "hidden"
            note = "planted point: " + (kept if outcome.is_hidden else "given up")
        progress(number + 1, len(trained.points), note)
    if not instances:
        raise InputError("No point can be shipped; train for more epochs, or try another seed.")
    return instances, outcomes


def _word(one: LabelledInstance) -> str:
    return "no label" if one.truth is None else one.truth.label.value


def _regular(network: bytes, point: PlantedPoint, origin: Origin, seconds: float) -> LabelledInstance:
    """The instance with its label; `unsat` only where the same proof holds on the box larger by 1e-4."""
    draft = Draft(network, point.question, by_intervals())
    instance = instance_of(draft, origin)
    truth = find_label(instance, seconds=seconds).truth
    if truth is not None and truth.label is Label.UNSAT:
        proof = replace(draft, certificate=truth.certificate)
        truth = truth if is_proven_on_enlarged(proof) else None
    return LabelledInstance(instance, truth)


def _planted(
    network: bytes, point: PlantedPoint, number: int, origin: Origin, filter_name: str
) -> tuple[PlantOutcome, LabelledInstance | None]:

    assert point.plant is not None
    try:
        made = proven(Draft(network, point.question, Certificate("witness"), point.plant), origin)
    except InvalidProof:
        return PlantOutcome(number, False, "", None, None, None), None
    assert made.truth is not None
    graph = read_onnx(network)
    found_by = ""
    for name, restarts, steps in FILTER_ATTACKS[filter_name]:
        budget = Budget(restarts=restarts, steps=steps, until_found=True)
        if ATTACKS[name](graph, point.question, seed=number + 1, budget=budget).witness is not None:
            found_by = name
            break
    inner, outer = boundary_distance(graph, point.question, point.plant, point.label)
    margin = next(iter(made.truth.claims.values())).margin
    outcome = PlantOutcome(
        number,
        True,
        found_by,
        None if margin is None else float(margin),
        float(inner),
        None if outer is None else float(outer),
    )
    return outcome, made


def report_of(trained: TrainedNetwork, outcomes: list[PlantOutcome], filter_name: str) -> dict[str, Any]:
    """The record of the planting in the suite's `truth/` folder."""
    return {
        "tier": "trained",
        "epochs": trained.epochs,
        "filter": [list(one) for one in FILTER_ATTACKS[filter_name]],
        "planted": len(outcomes),
        "proven": sum(one.is_proven for one in outcomes),
        "hidden": sum(one.is_hidden for one in outcomes),
        "points": [
            {
                "point": one.number,
                "proven": one.is_proven,
                "found_by": one.found_by,
                "margin": one.margin,
                "distance_at_least": one.distance_above,
                "distance_at_most": one.distance_below,
            }
            for one in outcomes
        ],
    }


# Bounds on the distance from a counterexample to the nearest point that is not one (largest coordinate)


#: The radius of the largest ball is found by this many halvings.
_HALVINGS = 24


def boundary_distance(
    network: Network, question: Property, plant: Point, label: int
) -> tuple[Fraction, Fraction | None]:
    """Below the first distance all inputs violate, as intervals prove; at the second some input does not,
    exactly.

    For two classes, of which `label` should win. The second is None if none was found within the box.
    """
    return _proven_radius(network, plant, label), _safe_distance(network, question, plant, label)


def _safe_distance(network: Network, question: Property, plant: Point, label: int) -> Fraction | None:
    """How far to go by the signs of the gradient until the right class wins."""
    (case,) = question.cases
    function = to_torch(network)
    x = torch.tensor([[float(v) for v in plant]], dtype=torch.float64, requires_grad=True)
    with one_thread():
        outputs = function(x)
        (slope,) = torch.autograd.grad(outputs[0, label] - outputs[0, 1 - label], x)
    signs = [int(s) for s in np.sign(slope[0].numpy())]
    reach = max(b - a for a, b in zip(case.box.lower, case.box.upper, strict=True))
    best: Fraction | None = None
    step = Fraction(float(np.float32(reach)))
    for _ in range(_HALVINGS):
        step /= 2
        moved = tuple(
            min(max(v + s * step, low), high)
            for v, s, low, high in zip(plant, signs, case.box.lower, case.box.upper, strict=True)
        )
        try:
            if violation_at(network, question, moved).violates is False:
                best = step
        except Undecided:
            continue
    return best


def _proven_radius(network: Network, plant: Point, label: int) -> Fraction:
    """A radius within which intervals prove that the wrong class is at least as high."""
    bounds = real_outputs(network)
    radius = Fraction(1, 64)
    for _ in range(2 * _HALVINGS):
        both = bounds(ball(plant, radius))
        if Fraction(both[label][1]) <= Fraction(both[1 - label][0]):
            return radius
        radius /= 2
    return Fraction(0)
