"""Instances changed by hand, with truths bound to the changed files, and a search for counterexamples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from dokimos.instances.model import Instance, LabelledInstance, Truth
from dokimos.networks.replay import replay
from dokimos.properties.model import Box, Property
from dokimos.properties.reading import read_vnnlib
from dokimos.properties.writing import write_vnnlib1

Weights = dict[str, NDArray[np.float32]]
#: Leads of class 0 below this are no rounding errors of the small networks here.
CLEARLY_LOST = -1e-4


def with_weights(instance: Instance, edit: Callable[[Weights], None]) -> Instance:
    """The instance whose weights `edit` has changed in place."""
    model = onnx.load_from_string(instance.network_file)
    weights = {w.name: numpy_helper.to_array(w).copy() for w in model.graph.initializer}
    edit(weights)
    for tensor in model.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(weights[tensor.name], tensor.name))
    return replace(instance, network_file=model.SerializeToString(deterministic=True))


def with_wider_box(instance: Instance, factor: int) -> Instance:
    """The instance whose box is `factor` times as wide."""
    question = question_of(instance)
    box = box_of(instance)
    radii = [(high - x) * factor for x, high in zip(box.centre, box.upper, strict=True)]
    wide = Box(
        tuple(x - r for x, r in zip(box.centre, radii, strict=True)),
        tuple(x + r for x, r in zip(box.centre, radii, strict=True)),
    )
    changed = replace(question, cases=(replace(question.cases[0], box=wide),))
    return replace(instance, property_file=write_vnnlib1(changed).encode("ascii"))


def question_of(instance: Instance) -> Property:
    return read_vnnlib(instance.property_file, file="property")


def box_of(instance: Instance) -> Box:
    (case,) = question_of(instance).cases
    return case.box


def rebound(labelled: LabelledInstance, instance: Instance) -> Truth:
    """The truth of `labelled`, claimed of the changed files, with margins that any proof would cover."""
    assert labelled.truth is not None
    return replace(
        labelled.truth,
        network_sha256=instance.network_sha256,
        property_sha256=instance.property_sha256,
        claims={
            s: replace(c, margin=Fraction(0) if c.proven else None)
            for s, c in labelled.truth.claims.items()
        },
    )


def smallest_lead(instance: Instance, rng: np.random.Generator, *more: NDArray[np.float64]) -> float:
    """The smallest lead of class 0 that onnxruntime shows at corners, uniform points and `more` points."""
    box = box_of(instance)
    lower, upper = (np.array([float(x) for x in end]) for end in (box.lower, box.upper))
    corners = np.where(rng.random((400, box.size)) < 0.5, lower, upper)
    inside = rng.uniform(lower, upper, size=(400, box.size))
    centre = (lower + upper) / 2
    points = np.vstack([centre, corners, inside, *(np.clip(p, lower, upper) for p in more)])
    inwards = np.nextafter(points.astype(np.float32), centre.astype(np.float32))
    scores = replay(instance.network_file, inwards).astype(np.float64)
    return float((scores[:, :1] - scores[:, 1:]).min())
