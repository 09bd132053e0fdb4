"""The paper's specifications, and a file in the dialect of its public implementation, run unchanged."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from dokimos.laws import text
from dokimos.laws.domain.definition import Domain, read_domain
from dokimos.laws.domain.functions import DomainFunction
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.language.parser import read_law
from tests.laws.language.test_parser import CORPUS
from tests.laws.toy import domain, risk

ACCEPT = CORPUS / "accept"


def functions(**given: Any) -> dict[str, DomainFunction]:
    return {name: DomainFunction(name, function) for name, function in given.items()}


def test_felonies() -> None:
    found = run_law(read_law(ACCEPT / "felony_inc.law"), model=risk, domain=domain())
    assert found.is_violated and found.tested > 0


def test_blurred_images() -> None:
    rng = np.random.default_rng(1)
    images = rng.normal(size=(60, 4, 4))
    images[:30] += 1
    right = np.repeat([1, 0], 30)
    of = Domain(
        "images",
        functions=functions(blur=lambda image: np.full_like(image, image.mean())),
        inputs=lambda: images,
        labels=lambda: right,
    )
    law = read_law(ACCEPT / "blur.law")
    found = run_law(law, model=lambda image: int(image[0, 0] > 0.5), domain=of)
    expected = 0
    for image, label in zip(images, right, strict=True):
        blurred_is_right = int(image.mean() > 0.5) == label
        expected += bool(blurred_is_right and int(image[0, 0] > 0.5) != label)
    assert (found.tested, found.violated) == (60, expected) and expected > 0
    assert "of 16 values changed" in found.violations[0].words


def test_reviews() -> None:
    reviews = [["good", "bad food"], ["nice", ""], ["", "awful"]]
    of = read_domain(
        SimpleNamespace(FEATURES=[text("pos"), text("neg")], inputs=lambda: reviews), name="reviews"
    )
    more_is_worse = run_law(
        read_law(ACCEPT / "review.law"),
        model=lambda review: int(len(review[1]) > len(review[0])),
        domain=of,
    )
    assert more_is_worse.is_exhaustive and more_is_worse.tested == 9 and not more_is_worse.is_violated
    contrary = run_law(
        read_law(ACCEPT / "review.law"),
        model=lambda review: int(len(review[1]) < len(review[0])),
        domain=of,
    )
    assert contrary.is_violated and "neg 'bad food' instead of ''" in str(
        [v.words for v in contrary.violations]
    )


def test_landings() -> None:
    class State:
        def __init__(self, height: float) -> None:
            self.height = height

    def play(state: State, seed: int) -> int:
        return int(np.random.default_rng(seed).random() > state.height)

    states = [State(height) for height in (0.2, 0.5, 0.8)]

    def of(change: float) -> Domain:
        own = functions(play=play, relax=lambda state: State(state.height + change))
        return Domain("lunar", functions=own, inputs=lambda: states)

    law = read_law(ACCEPT / "relax.law")
    settings = LawSettings(budget=60)
    easier = run_law(law, model=play, domain=of(-0.2), settings=settings)
    assert (easier.tested, easier.violated, easier.failed) == (60, 0, 0)
    harder = run_law(law, model=play, domain=of(0.2), settings=settings)
    assert harder.is_violated and "o1 is" in harder.violations[0].words


def test_the_public_dialect() -> None:
    features = ["a", "b", "c", "d"]
    rows = np.arange(12.0).reshape(3, 4)
    made = SimpleNamespace(FEATURES=features, INDICES={-3: "d"}, inputs=lambda: rows)
    law = read_law(ACCEPT / "public_dialect.nom")
    changed = law.text.replace('""', "0")
    assert changed != law.text
    from dokimos.laws.language.parser import parse_law

    found = run_law(
        parse_law(changed), model=lambda row: int(row[3]), domain=read_domain(made, name="hotel")
    )
    assert (found.tested, found.failed, found.violated) == (5000, 0, 0)
