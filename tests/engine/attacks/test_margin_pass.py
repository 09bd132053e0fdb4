"""Margins and gradients of the shared pass."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dokimos.core.errors import InputError
from dokimos.difficulty import inspection
from dokimos.engine.attacks import margin_pass
from dokimos.engine.attacks.margin_pass import MarginPass
from tests.difficulty.inspections import dense, observe, random_dense, unit_box

UNSAFE = "(or (and (<= Y_0 Y_1)) (and (<= Y_0 Y_2)))"


@pytest.mark.parametrize("inner", ["Relu", "Tanh", "Sigmoid", "Erf"])
def test_gradients_are_those_of_central_differences(inner: str) -> None:
    seen = observe(
        random_dense(np.random.default_rng(1), (3, 5, 4, 3), inner), unit_box(3, 3, UNSAFE), samples=40
    )
    step, points = 1e-6, seen.points[0][:20]
    for i in range(3):
        moved = [points.copy(), points.copy()]
        moved[0][:, i] += step
        moved[1][:, i] -= step
        ahead, behind = (MarginPass(seen.network, seen.forms[0])(m).margins for m in moved)
        differences = (ahead - behind) / (2 * step)
        assert np.allclose(differences, seen.sampled.gradients[:20, i], atol=1e-6)


def test_the_size_of_batches_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    network, asked = random_dense(np.random.default_rng(2), (3, 5, 3)), unit_box(3, 3, UNSAFE)
    whole = observe(network, asked, samples=30).sampled
    monkeypatch.setattr(margin_pass, "BATCH_BYTES", 1)
    single = observe(network, asked, samples=30)
    assert margin_pass.batch_size(single.network) == 1
    assert np.allclose(single.sampled.margins, whole.margins, rtol=1e-12)
    assert np.allclose(single.sampled.gradients, whole.gradients, rtol=1e-12)


def test_inputs_that_the_box_fixes_have_no_gradient() -> None:
    asked = unit_box(2, 1, "(<= Y_0 -9)", low=1)  # the box is one point
    seen = observe(dense(([[2, 3]], [0])), asked)
    assert (seen.sampled.gradients == 0).all()
    assert (seen.sampled.margins == 14).all()


def test_samples_are_shared_out_among_cases() -> None:
    asked = unit_box(
        1, 1, "(or (and (<= X_0 0) (<= Y_0 -1)) (and (>= X_0 0) (>= Y_0 3)) (and (>= X_0 0.5) (>= Y_0 2)))"
    )
    seen = observe(dense(([[1]], [0])), asked, samples=10)
    assert [len(points) for points in seen.points] == [4, 3, 3]
    assert seen.sampled.margins.min() == min(float(seen.points[0].min()) + 1, 3 - 1, 2 - 1)
    assert seen.least_margin == min(-1 + 1, 3 - 1, 2 - 1)
    many = observe(dense(([[1]], [0])), asked, samples=2)
    assert [len(points) for points in many.points] == [2, 2, 2]


def test_threads_are_as_before() -> None:
    before = torch.get_num_threads()
    observe(dense(([[1]], [0])), unit_box(1, 1, "(<= Y_0 -9)")).sampled  # noqa: B018
    assert torch.get_num_threads() == before


def test_too_many_samples_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspection, "MOST_NUMBERS", 100)
    seen = observe(dense(([[1, 1]], [0])), unit_box(2, 1, "(<= Y_0 -9)"), samples=51)
    with pytest.raises(InputError, match="use `samples` 50 or fewer"):
        seen.sampled  # noqa: B018
