from __future__ import annotations

import numpy as np
import pytest

from dokimos.checker.check import check
from dokimos.core.errors import InputError
from dokimos.engine.label import LabelFinding, find_label
from dokimos.suites.instance import Instance, Label, Semantics
from tests.difficulty.inspections import dense, unit_box

#: |x|, and 1 + relu(x).
ABSOLUTE = dense(([[1], [-1]], [0, 0]), ([[1, 1]], [0]))
HINGE = dense(([[1]], [0]), ([[1]], [1]))


def found(network: bytes, asked: bytes, seconds: float = 20) -> LabelFinding:
    instance = Instance("i", network, asked)
    finding = find_label(instance, seconds=seconds)
    if finding.truth is not None:
        check(instance, finding.truth)
    return finding


@pytest.mark.parametrize(
    ("network", "unsafe", "label", "kind"),
    [
        (HINGE, "(<= Y_0 0.5)", Label.UNSAT, "linear"),
        (ABSOLUTE, "(<= Y_0 -0.1)", Label.UNSAT, "linear"),
        (ABSOLUTE, "(<= Y_0 0.1)", Label.SAT, "witness"),
        (ABSOLUTE, "(>= Y_0 0.99)", Label.SAT, "witness"),
        (dense(([[1]], [0]), ([[1]], [1]), inner="Tanh"), "(<= Y_0 0.1)", Label.UNSAT, "linear"),
    ],
)
def test_a_label_is_found_and_proven(network: bytes, unsafe: str, label: Label, kind: str) -> None:
    finding = found(network, unit_box(1, 1, unsafe))
    assert finding.truth is not None
    assert (finding.truth.label, finding.truth.certificate.kind) == (label, kind)
    assert finding.by and not finding.reason


def test_many_inputs_need_linear_bounds_with_splits() -> None:
    """relu(t) − relu(2t − 1)/2 with t = Σ x_i is at least 0; intervals say −13; 14 inputs are not cut."""
    size = 14
    network = dense((np.outer([1, 2], np.ones(size)), [0, -1]), ([[1, -0.5]], [0]))
    finding = found(network, unit_box(size, 1, "(<= Y_0 -0.1)"))
    assert finding.truth is not None
    assert (finding.truth.label, finding.by) == (Label.UNSAT, "branch and bound")
    assert set(finding.truth.certificate.data) == {"questions"}


def test_what_stays_open_has_the_best_margins_of_both_sides() -> None:
    """The least value of |x| is 0: that it is not below 0 cannot be proven with room to spare."""
    finding = found(ABSOLUTE, unit_box(1, 1, "(< Y_0 0)", low=-1, high=1), seconds=2)
    assert finding.truth is None
    assert finding.nearest == pytest.approx(0, abs=0.1)
    assert finding.bound is not None and finding.bound <= 0
    assert "linear: " in finding.reason


def test_what_holds_by_less_than_float32_loses_is_proven_over_the_reals() -> None:
    """Σ relu(1000·x_i)/2 − Σ relu(1000·x_i − 500) is at least 0 where x <= 1, and 0 at its corner."""
    size = 2
    rows = 1000.0 * np.vstack([np.eye(size), np.eye(size)])
    bias = [0.0] * size + [-500.0] * size
    network = dense((rows, bias), ([[0.5] * size + [-1.0] * size], [2.0**-13]))
    finding = found(network, unit_box(size, 1, "(<= Y_0 0)", low=-1, high=1))
    assert finding.truth is not None
    assert finding.truth.label is Label.UNSAT
    assert finding.truth.claim(Semantics.REAL).proven
    assert not finding.truth.claim(Semantics.FLOAT32).proven


def test_what_does_not_fit_is_an_error() -> None:
    with pytest.raises(InputError):
        found(HINGE, unit_box(2, 1, "(<= Y_0 0)"))
