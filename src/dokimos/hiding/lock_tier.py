"""The lock tier: three siblings for each point, one of which has a counterexample that a parity lock hides.

They are a base network that intervals prove robust on every box, enlarged by 1e-4; the same with a lock
that no input opens; and the same with a lock that opens in one cell. Since the base is proven, a violation
is only possible where the gate is open, so the violations' share of the box's volume is at most 2^-bits.
Nothing is claimed about gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dokimos.checker.proofs.enclosure import LEAF
from dokimos.constructions.draft import Draft
from dokimos.constructions.parts.locked_drafts import enlarged_box, lock_draft, shape_of
from dokimos.core.errors import ConstructionFailed, InvalidProof
from dokimos.hiding.architectures import draw_network
from dokimos.hiding.labelled import Origin, named, proven
from dokimos.hiding.models import DataPoint, points_of_model
from dokimos.hiding.plants import draw_points
from dokimos.hiding.settings import HideSettings
from dokimos.labelling.proof_search import find_label
from dokimos.properties.model import Property
from dokimos.suites.instance import Certificate, Label, LabelledInstance

FAMILY = "hidden-lock"
#: Fewer inputs get fewer bits, so that a cell keeps a radius of a hundredth of the box.
BITS_OF_INPUT = 3


@dataclass(frozen=True)
class LockedTrio:
    """The result for one point: its instances, and whether the base alone is proven robust: on its box, and
    on the box enlarged by 1e-4 on every side."""

    instances: tuple[LabelledInstance, ...]
    is_base_proven: bool
    is_proven_enlarged: bool
    bits: int


def make_trios(settings: HideSettings, progress: Callable[[int, int, str], None]) -> list[LockedTrio]:
    """The three siblings of each point, on a base trained for the points, or on the user's own network."""
    rng = np.random.default_rng(settings.seed)
    bases = _own_bases(settings) if settings.model else _trained_bases(settings, rng, progress)
    trios = []
    for number, (network, question, certificate) in enumerate(bases):
        trios.append(_trio(settings, network, question, certificate, rng))
        progress(number + 1, len(bases), "proven" if trios[-1].is_base_proven else "base not proven")
    return trios


_Base = tuple[bytes, Property, Certificate | None]


def _trained_bases(
    settings: HideSettings, rng: np.random.Generator, progress: Callable[[int, int, str], None]
) -> list[_Base]:
    from dokimos.hiding.certified import certified_base

    network = draw_network(settings.architecture, settings.input_shape, scale=settings.scale, rng=rng)
    points = draw_points(
        settings.input_shape, epsilon=settings.epsilon, planted=settings.points, regular=0, rng=rng
    )
    file, _ = certified_base(
        network,
        points,
        enlarged_box,
        progress=lambda step, done: progress(0, len(points), f"step {step}: {done} points certified"),
    )
    return [(file, point.question, Certificate("enclosure", {"trees": [[LEAF]]})) for point in points]


def _own_bases(settings: HideSettings) -> list[_Base]:
    """The user's network at each of their points, with a proof if one is found in time."""
    found: list[_Base] = []
    points: tuple[DataPoint, ...] = points_of_model(settings)
    for point in points:
        origin = Origin(FAMILY, {}, settings.seed, settings.timeout_seconds)
        instance = named(point.network, point.question, origin)
        label = find_label(instance, seconds=settings.prove_seconds)
        certificate = None
        if label.truth is not None and label.truth.label is Label.UNSAT:
            certificate = label.truth.certificate
        found.append((point.network, point.question, certificate))
    return found


def _trio(
    settings: HideSettings,
    network: bytes,
    question: Property,
    certificate: Certificate | None,
    rng: np.random.Generator,
) -> LockedTrio:
    inputs = question.cases[0].box.size
    bits = settings.bits or min(75, BITS_OF_INPUT * inputs)
    robust = Draft(network, question, certificate or Certificate("enclosure", {"trees": [[LEAF]]}))
    pair = lock_draft(robust, shape_of(bits, inputs, weight=settings.weight), rng)
    made: list[LabelledInstance] = []
    for sibling, draft in (("none", robust), ("shut", pair.shut), ("open", pair.opened)):
        about = {"lock": sibling, "bits": bits, "weight": settings.weight}
        origin = Origin(FAMILY, about, settings.seed, settings.timeout_seconds)
        if certificate is None and draft.witness is None:
            made.append(LabelledInstance(named(draft.network, draft.question, origin), None))
            continue
        try:
            made.append(proven(draft, origin))
        except InvalidProof as error:
            raise ConstructionFailed(f"A sibling ({sibling}) is not proven: {error}.") from None
    is_proven = certificate is not None
    return LockedTrio(tuple(made), is_proven, is_proven and pair.is_proven_enlarged, bits)


def volume_claim(trio: LockedTrio) -> str:
    """What is proven about the counterexamples' share of the box."""
    if not trio.is_base_proven:
        return "the base is not proven robust: no volume is claimed"
    return f"at most 2^-{trio.bits} of the box"
