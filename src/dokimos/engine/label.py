"""The search for a label of one instance, within a budget of time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

import numpy as np

from dokimos.core.errors import DokimosError, InputError, InvalidProof, UnsupportedOp
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.engine.open_cover import OpenCover
from dokimos.engine.outcome import SearchEffort, accepted_truth
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Certificate, Instance, Label, Truth
from dokimos.suites.vnnlib.margins import nearest_point
from dokimos.suites.vnnlib.model import Point, Property, require_fit
from dokimos.suites.vnnlib.reader import read_vnnlib

#: A gradient for what can be followed, and units for what hides behind those that are off: first a glance,
#: then, beside the proof, whenever attacks have had less than this share of the time.
_ATTACKS = ("pgd", "units")
_GLANCE, _LOOK, _ATTACK_SHARE = Budget(restarts=10, steps=10, once=True), Budget(restarts=50, steps=50), 0.1
#: No attack is begun for less, in seconds.
_LEAST_LOOK = 0.25


@dataclass(frozen=True)
class LabelFinding:
    """What a search has found so far.

    `truth` is a label whose proof the checker and the cross-check have accepted; None if there is no label;
    then `reason` says why. `by` names what found it. `nearest` is the least margin of all inputs tried
    (computed in floats: 0 or less looks like a violation), `bound` is a proven lower bound of the margin at
    every input; each is None if nothing is known. `search` is what a search for a proof can go on from.
    """

    truth: Truth | None = None
    by: str = ""
    reason: str = ""
    nearest: float | None = None
    bound: float | None = None
    search: OpenCover | None = None


def _ignore(_: LabelFinding) -> None:
    """Whoever asks for nothing on the way."""


def find_label(
    instance: Instance,
    *,
    seconds: float,
    so_far: Callable[[LabelFinding], None] = _ignore,
    kept: OpenCover | None = None,
) -> LabelFinding:
    """Attack and prove, until the instance has a label or the CPU time is up.

    Everything counts: reading, loading torch where it is not loaded, checking the proof, the cross-check.

    `so_far` is called with what is known after each stage, and now and then in the last. The proof goes on
    from what is `kept` of an earlier search. Raises InputError if a file cannot be read, or if the property
    or what is kept does not fit the network.
    """
    effort = SearchEffort(seconds)
    network = read_onnx(instance.network_file, name=f"{instance.name}.onnx")
    asked = read_vnnlib(instance.property_file, file=f"{instance.name}.vnnlib")
    require_fit(network, asked)
    search = _LabelSearch(instance, network, asked, effort, so_far, kept)
    for stage in (
        search.look_first,
        search.attack,
        search.branch_and_bound,
    ):
        stage()
        so_far(search.found)
        if search.found.truth is not None:
            break
    return search.found


class _LabelSearch:
    """What is known of one instance, stage by stage."""

    def __init__(
        self,
        instance: Instance,
        network: Network,
        asked: Property,
        effort: SearchEffort,
        so_far: Callable[[LabelFinding], None],
        kept: OpenCover | None,
    ) -> None:
        self._instance, self._network, self._asked, self._kept = instance, network, asked, kept
        self._effort, self._attacked, self._looks = effort, 0.0, 0
        self._cannot_attack = False
        self._why: list[str] = []
        self._so_far = so_far
        self.found = LabelFinding()

    def look_first(self) -> None:
        """The cheapest attempt: the centres of the boxes."""
        for centre in dict.fromkeys(box.centre for box, _ in self._asked.questions()):
            if self._settle(centre, "the centre of the box"):
                return

    def attack(self) -> None:
        """A glance by each attack. What reading took is kept for the check, which reads again."""
        self._effort.reserve = self._effort.spent
        for name in _ATTACKS:
            if self._attack(name, _GLANCE, _ATTACK_SHARE * self._effort.left):
                return

    def _attack_beside(self) -> bool:
        """The next attack, if it is time for one; whether it settles the property."""
        seconds = _ATTACK_SHARE * self._effort.spent - self._attacked
        if seconds < max(_LEAST_LOOK, 0.5 * _ATTACK_SHARE * self._effort.spent):
            return False
        self._looks += 1
        return self._attack(_ATTACKS[self._looks % len(_ATTACKS)], _LOOK, seconds)

    def _attack(self, name: str, budget: Budget, seconds: float) -> bool:
        """Whether an attack settles the property; each draws other points."""
        if self._cannot_attack or seconds <= 0:
            return False
        before = self._effort.spent
        try:
            limited = replace(budget, cpu_seconds=seconds, until_found=True)
            result = ATTACKS[name](self._network, self._asked, seed=self._looks, budget=limited)
        except (InputError, UnsupportedOp) as error:
            self._note(f"{name}: {error}")
            self._cannot_attack = True
            return False
        finally:
            self._attacked += self._effort.spent - before
        self._seen(result.least_margin)
        return result.least_margin <= 0 and any(
            self._settle(point, name) for point in _candidates(result.point, self._asked)
        )

    def branch_and_bound(self) -> None:
        """Cuts of inputs or units, and linear bounds: for every operator that has lines."""
        from dokimos.engine.linear import LinearSearch

        def save() -> None:
            if (kept := search.open_cover()) is not None:
                self._so_far(replace(self.found, search=kept))

        effort = self._effort
        effort.save, effort.beside = save, self._attack_beside
        settles = partial(self._settle, by="branch and bound")
        try:
            search = LinearSearch(self._network, self._asked, effort, settles, kept=self._kept)
            found = search.run()
        except (InvalidProof, UnsupportedOp) as error:
            self._note(f"linear: {error}")
            return
        self._bounded(found.bound)
        if self.found.truth is not None:  # an attack was faster
            return
        if found.data is not None:
            self._prove(Certificate("linear", found.data), "branch and bound")
        elif not found.settled:
            self._note(f"linear: {found.reason}")
            self.found = replace(self.found, search=search.open_cover())

    def _note(self, why: str) -> None:
        self._why.append(why.rstrip("."))
        self.found = replace(self.found, reason="; ".join(self._why))

    def _seen(self, margin: float) -> None:
        known = self.found.nearest
        if math.isfinite(margin) and (known is None or margin < known):
            self.found = replace(self.found, nearest=margin)

    def _bounded(self, bound: float) -> None:
        known = self.found.bound
        if math.isfinite(bound) and (known is None or bound > known):
            self.found = replace(self.found, bound=bound)

    def _settle(self, witness: Point, by: str) -> bool:
        """Whether the point proves `sat`."""
        return self._accept(Certificate("witness"), Label.SAT, witness, by)

    def _prove(self, certificate: Certificate, by: str) -> None:
        if not self._accept(certificate, Label.UNSAT, None, by):
            self._note(f"{certificate.kind}: the checker rejects the proof that was found")

    def _accept(self, certificate: Certificate, label: Label, witness: Point | None, by: str) -> bool:
        """Keep the label if the checker proves it from the files, and no runtime contradicts it."""
        instance = self._instance
        try:
            truth = accepted_truth(instance, certificate, label, witness)
        except InvalidProof as error:
            if label is Label.UNSAT:
                self._note(str(error))
            return False
        except DokimosError as error:
            self._note(str(error))
            return False
        self.found = replace(self.found, truth=truth, by=by, reason="")
        return True


def _candidates(point: np.ndarray, asked: Property) -> Iterator[Point]:
    """The point itself, if it lies in a box, and the point clipped to each box."""
    exact = tuple(Fraction(float(x)) for x in point)
    boxes = [case.box for case in asked.cases if not case.box.is_empty]
    seen = dict.fromkeys([exact, *(nearest_point(exact, box) for box in boxes)])
    yield from (each for each in seen if any(each in box for box in boxes))
