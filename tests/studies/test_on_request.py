"""What is measured on request: margins bracketed by proof, proof size, and what the paper left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dokimos
from dokimos.difficulty.components import EXTRAS
from dokimos.difficulty.profiles import extra_names
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.testing.statements import question
from dokimos_studies.veristress.proof_size import ProofSearchLimits, smallest_proof
from tests.difficulty.inspections import dense, observe

ASKED = question([(-1, 1)] * 2, 1, "(<= Y_0 0)")
#: |x| + |y| + 1/2, least 1/2 at 0; linear bounds prove it, intervals too.
ABSOLUTE = dense(([[1, 0], [-1, 0], [0, 1], [0, -1]], [0, 0, 0, 0]), ([[1, 1, 1, 1]], [0.5]))
#: 2 - |x| - |y| + 1/8, least 1/8 at the corners.
CORNERS = dense(([[1, 0], [-1, 0], [0, 1], [0, -1]], [0, 0, 0, 0]), ([[-1, -1, -1, -1]], [2.125]))
LINEAR = dense(([[1, 2]], [4]), ([[1]], [0]))


def test_the_bracket_holds_the_margin_and_is_narrow_where_bounds_are_exact() -> None:
    for network, least in ((ABSOLUTE, 0.5), (CORNERS, 0.125), (LINEAR, 1.0)):
        seen = observe(network, ASKED, samples=200)
        low, high = (EXTRAS[name](seen).value for name in ("margin_low", "margin_high"))
        assert low is not None
        assert high is not None
        assert low <= least <= high
        assert high == pytest.approx(least, abs=0.1)


def test_a_counterexample_brackets_from_below_zero() -> None:
    seen = observe(dense(([[1, 1]], [0.5]), ([[1]], [-0.25])), ASKED, samples=200)
    assert EXTRAS["margin_high"](seen).value == pytest.approx(-0.25)
    assert EXTRAS["proof_leaves"](seen).value is None


def test_proofs_without_splits_have_one_leaf_a_conjunction() -> None:
    two = question([(-1, 1)] * 2, 1, "(or (and (<= Y_0 0)) (and (>= Y_0 100)))")
    for asked, leaves in ((ASKED, 1), (two, 2)):
        assert EXTRAS["proof_leaves"](observe(ABSOLUTE, asked, samples=50)).value == leaves
    assert smallest_proof(read_onnx(CORNERS), read_vnnlib(ASKED, file="p"), -9.0).leaves == 1


def test_splits_are_counted() -> None:
    """2·max(0, x) − 16·max(0, x/8) + 1/2 needs a split: bounds do not see that both are the same."""
    network = dense(([[1, 0], [0.125, 0]], [0, 0]), ([[2, -16]], [0.5]))
    found = smallest_proof(read_onnx(network), read_vnnlib(ASKED, file="p"), -9.0)
    assert found.leaves is not None
    assert 2 <= found.leaves <= 4
    assert found.by and not found.note


def _hard() -> tuple[Network, Property]:
    """2·max(0, x) − 16·max(0, x/8), added over six inputs, + 1/2: each needs splits of its own."""
    count = 6
    first, last = [], []
    for k in range(count):
        row = [0.0] * count
        row[k] = 1.0
        first += [row, [each / 8 for each in row]]
        last += [2.0, -16.0]
    asked = question([(-1, 1)] * count, 1, "(<= Y_0 0)")
    return read_onnx(dense((first, [0.0] * 2 * count), ([last], [0.5]))), read_vnnlib(asked, file="p")


def test_steps_end_a_search_at_the_same_place_however_slow_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network, asked = _hard()
    whole = smallest_proof(network, asked, -9.0)
    assert whole.leaves is not None and whole.leaves > 8
    few = smallest_proof(network, asked, -9.0, limits=ProofSearchLimits(nodes=5))
    assert few.leaves is None and "branch and bound ended after 5 nodes" in few.note
    monkeypatch.setattr("time.monotonic", lambda: float("inf"))  # the clock decides nothing
    assert smallest_proof(network, asked, -9.0) == whole
    assert smallest_proof(network, asked, -9.0, limits=ProofSearchLimits(nodes=5)) == few


def test_what_cpu_time_has_ended_is_said() -> None:
    network, asked = _hard()
    found = smallest_proof(network, asked, -9.0, limits=ProofSearchLimits(cpu_seconds=1e-9))
    assert found.leaves is None and "ended after 1e-09 s of CPU time" in found.note


def test_a_linear_margin_has_the_statistics_of_a_plane() -> None:
    seen = observe(LINEAR, ASKED, samples=400)
    value = {name: EXTRAS[name](seen).value for name in extra_names(more=True)}
    assert value["gradient_norm"] == value["local_lipschitz"] == 3.0
    assert value["gradient_count"] == 1
    assert value["gradient_dimension_max"] == pytest.approx(9 / 5)
    assert value["gradient_concentration"] == pytest.approx(2 / 3)
    for name in ("gradient_variation", "linearisation_error", "relative_linearisation", "curvature"):
        assert value[name] == pytest.approx(0, abs=1e-9)
    assert value["first_order_ratio"] == pytest.approx(4 / 3)
    assert value["lipschitz_ratio"] == pytest.approx(3.0, rel=1e-6)
    assert value["linear_regions"] == 1
    assert value["layers"] == 1
    assert value["ibp_absolute_gap"] == pytest.approx(0, abs=1e-9)
    assert value["mean_margin"] == pytest.approx(4, abs=0.3)


def test_bends_are_seen() -> None:
    seen = observe(CORNERS, ASKED, samples=400)
    assert EXTRAS["curvature"](seen).value > 0.1  # type: ignore[operator]
    assert EXTRAS["gradient_variation"](seen).value == pytest.approx(1, abs=0.1)
    assert EXTRAS["linear_regions"](seen).value == 4


def test_products_are_products() -> None:
    seen = observe(CORNERS, ASKED, samples=200)
    unstable, regions = dokimos_components(seen, "unstable"), dokimos_components(seen, "regions")
    assert EXTRAS["unstable_regions"](seen).value == pytest.approx(unstable * regions)


def dokimos_components(seen: object, name: str) -> float:
    from dokimos.difficulty.components import CANONICAL

    value = CANONICAL[name](seen).value  # type: ignore[arg-type]
    assert value is not None
    return value


def test_a_profile_has_them_on_request_only(tmp_path: Path) -> None:
    (tmp_path / "n.onnx").write_bytes(LINEAR)
    (tmp_path / "p.vnnlib").write_bytes(ASKED)
    plain, more, kept = (
        dokimos.profile(tmp_path / "n.onnx", tmp_path / "p.vnnlib", out=tmp_path / "out", more=wanted)
        for wanted in (False, True, False)
    )
    names = [
        set(each.outcomes[0].profile.extras) for each in (plain, more, kept) if each.outcomes[0].profile
    ]
    assert "proof_leaves" not in names[0]
    assert {"proof_leaves", "linear_regions", "mean_margin"} <= names[1]
    assert names[2] == names[1]
    assert kept.outcomes[0].was_there
    assert np.isfinite(
        [e.value for e in more.outcomes[0].profile.extras.values() if e.value is not None]
    ).all()  # type: ignore[union-attr]
