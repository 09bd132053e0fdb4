"""Campaigns drawn from known truths, and how often something is found in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dokimos.difficulty.explain.rows import CLAIM_LEVEL, EXPLAINING, Observation, Status
from dokimos.difficulty.explain.separation import WithinFamilies, largest_of_all
from dokimos.difficulty.explain.strata import Resampling, Strata
from dokimos_studies.veristress.interaction import PAIRS, AdditiveModel
from tests.difficulty.explain.sample import seen

Floats = NDArray[np.float64]
FAMILIES, EACH = 9, 26
COUNT = len(EXPLAINING)
NULLS = ("noise", "families", "twins", "additive")


@dataclass(frozen=True)
class Found:
    """Which components separate, and which pairs interact, in one drawn campaign."""

    separating: tuple[str, ...]
    interacting: tuple[tuple[str, str], ...]


def find(kind: str, rng: np.random.Generator, *, permutations: int = 199) -> Found:
    """What is found in one campaign of that kind: 9 families of 26 instances, all components measured."""
    strata = Strata.of(draw(kind, rng), EXPLAINING)
    resampling = Resampling(permutations, int(rng.integers(2**31)))
    tested = [WithinFamilies(strata, k) for k in range(COUNT)]
    p_values = largest_of_all(tested, strata, resampling)
    pairs = AdditiveModel(strata).test(PAIRS, resampling)
    return Found(
        tuple(one.component for one, p in zip(tested, p_values, strict=True) if p <= CLAIM_LEVEL),
        tuple(pair for pair, p in pairs.items() if p <= CLAIM_LEVEL),
    )


def draw(kind: str, rng: np.random.Generator) -> list[Observation]:
    """One campaign.

    `noise`: every outcome is a coin. `families`: families differ in all components and in how many of
    them time out, and nothing else does. `twins`: two instances share a network, most components and the
    outcome. `additive`: three components act, side by side, one of them not in a straight line.
    `separating`: the log-odds of a timeout rise by 2 over the ranks of the first component (an AUC of about
    0.63). `interacting`: they rise by 5 over the ranks of the first component where the second is highest,
    and fall by 5 where it is lowest.
    """
    family = np.repeat(np.arange(FAMILIES), EACH)
    shared = np.arange(len(family)) // 2 if kind == "twins" else np.arange(len(family))
    inside = _correlated(rng, len(family))[shared]
    inside[:, 0] += rng.normal(size=len(family)) * (kind == "twins")
    values = inside + 2 * rng.normal(size=(FAMILIES, COUNT))[family]
    hardness = rng.normal(size=FAMILIES)[family] * (kind != "noise")
    late = rng.random(len(family))[shared] < _chance(kind, hardness, inside, _ranks(inside))
    return [
        seen(
            f"i{k}",
            Status.TIMEOUT if late[k] else Status.SOLVED,
            family=f"f{family[k]}",
            network=f"n{shared[k]}",
            **dict(zip(EXPLAINING, values[k].tolist(), strict=True)),
        )
        for k in range(len(family))
    ]


def _chance(kind: str, hardness: Floats, inside: Floats, ranks: Floats) -> Floats:
    odds = {
        "additive": 1.5 * inside[:, 0] - 1.5 * inside[:, 1] + np.exp(inside[:, 2]) - 1,
        "separating": 2 * ranks[:, 0],
        "interacting": 10 * ranks[:, 0] * ranks[:, 1],
    }
    found: Floats = 1 / (1 + np.exp(-hardness - odds.get(kind, 0.0)))
    return found


def _ranks(inside: Floats) -> Floats:
    """The ranks within families, from −½ to ½."""
    ordered = inside.reshape(FAMILIES, EACH, COUNT).argsort(axis=1).argsort(axis=1)
    found: Floats = (ordered / (EACH - 1) - 0.5).reshape(-1, COUNT)
    return found


def _correlated(rng: np.random.Generator, count: int) -> Floats:
    """Components that go together, as those of a profile do: correlations of about 0.3."""
    found: Floats = 0.8 * rng.normal(size=(count, COUNT)) + 0.5 * rng.normal(size=(count, 1))
    return found
