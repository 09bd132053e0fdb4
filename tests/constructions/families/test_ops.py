"""The family ops: every operator is there, in the form that it names, and misreading it shows."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

from dokimos.checker import prove
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.base import ATTEMPTS, Unusable
from dokimos.constructions.draft import Draft
from dokimos.constructions.families.ops import Knobs, OperatorPlan, corners, cuts, draw_plan
from dokimos.constructions.operators import QUANTISED, VARIANTS, Variant
from dokimos.constructions.recipes import shipped_recipe
from dokimos.engine.direct import by_intervals
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.reading import fold
from dokimos.networks.reading import onnx_file as read
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate
from dokimos.suites.instance import Certificate, Label
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.violation import violation_at
from dokimos.suites.vnnlib.writer import write_vnnlib1
from tests.checker.files import instance_of

#: Operators that can be read, but are not in the suite, whose instances are fixed.
READ_ONLY = {"ConvTranspose", "Cos", "Erf", "Floor", "Gelu", "Resize", "ScatterND", "Sign", "Sin", "Sqrt"}
READ_ONLY |= {"Upsample", "Where"}
MISREAD = [v for v in VARIANTS.values() if v.misreadings]


@cache
def drawn(variant: Variant, seed: int = 5) -> tuple[Draft, Draft, OperatorPlan]:
    """The two drafts and what they were made from."""
    knobs = Knobs(variant=variant.name)
    for attempt in range(ATTEMPTS):
        try:
            drafts = CONSTRUCTIONS["ops"].construct(knobs, np.random.default_rng([seed, attempt]))
        except Unusable:
            continue
        return *drafts, draw_plan(variant, knobs.margin, np.random.default_rng([seed, attempt]))
    pytest.fail("no draw gave an instance")


def operators(network: bytes) -> list[str]:
    return [node.op_type for node in onnx.load_from_string(network).graph.node]


def find_violation(network: bytes, question: Property) -> tuple[Fraction, ...] | None:
    """The corner of the box with the highest output, where that is unsafe, exactly."""
    (case,) = question.cases
    points = corners(case.box, np.random.default_rng(0))
    corner = points[int(np.argmax(replay(network, points)[:, 0]))]
    point = tuple(Fraction(float(x)) for x in corner)
    return point if violation_at(read_onnx(network), question, point).violates else None


def test_the_suite_has_every_variant_with_both_labels() -> None:
    recipe = shipped_recipe("ops")
    assert [draw.knobs["variant"] for draw in recipe.draws] == list(VARIANTS)
    assert recipe.size <= 120


def test_every_operator_that_is_read_is_tried() -> None:
    """Integers that only make shapes and indices are tried together, in one variant."""
    tried = {op for v in VARIANTS.values() for op in operators(drawn(v)[0].network)}
    tried |= {variant.op for variant in QUANTISED.values()}  # each checked by `quantised`
    assert set(read._RULES) | set(fold._RULES) <= tried | READ_ONLY
    own = {variant.op for variant in (*VARIANTS.values(), *QUANTISED.values())}
    assert set(read._RULES) <= own | READ_ONLY


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))
def test_the_file_keeps_the_form(variant: Variant) -> None:
    robust, violated, _ = drawn(variant)
    for draft in (robust, violated):
        assert variant.op in operators(draft.network)
        onnx.checker.check_model(onnx.load_from_string(draft.network), full_check=True)
    assert operators(robust.network) == operators(violated.network)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))
def test_the_reader_and_onnxruntime_mean_the_same(variant: Variant) -> None:
    robust, _, plan = drawn(variant)
    points = corners(plan.drawn.box, np.random.default_rng(1))[:5]
    for point, there in zip(points, replay(robust.network, points), strict=True):
        exact = evaluate(read_onnx(robust.network), [Fraction(float(x)) for x in point])
        assert np.allclose([float(y) for y in exact.lower], there, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("variant", MISREAD, ids=lambda v: v.name)
def test_whoever_misreads_it_gets_a_label_wrong(variant: Variant) -> None:
    """In each of the ways: the opposite label of the misread network is proven, by the checker."""
    robust, violated, plan = drawn(variant)
    text = write_vnnlib1(robust.question).encode()
    assert robust.question == violated.question
    for number, name in enumerate(variant.misreadings, start=1):
        networks = [plan.network(*output, misread=number) for output in plan.outputs]
        assert networks[0] != robust.network
        if (witness := find_violation(networks[0], robust.question)) is not None:
            prove(instance_of(networks[0], text), Certificate("witness"), Label.SAT, witness)
            continue
        assert find_violation(networks[1], violated.question) is None, name
        tree = cuts(networks[1], violated.question, Fraction(1, 2**20))
        prove(instance_of(networks[1], text), by_intervals(tree), Label.UNSAT, None)


def test_most_variants_can_be_misread() -> None:
    assert len(MISREAD) >= len(VARIANTS) - 3
    assert sum(len(v.misreadings) > 1 for v in MISREAD) >= 50
    for variant in VARIANTS.values():
        assert variant.about
        assert variant.name.startswith(variant.op.lower()[:3]) or variant.op in ("Gemm", "Constant")


def test_the_documentation_lists_the_variants() -> None:
    page = (Path(__file__).parents[3] / "docs" / "families.md").read_text(encoding="utf-8")
    forms = page.partition("### The forms\n")[2].partition("\n## ")[0]
    stated = [line for line in forms.splitlines() if line.startswith("| `")]
    assert stated == [
        f"| `{v.name}` | {v.op} | {v.about} | {'; '.join(v.misreadings) or '–'} |"
        for v in VARIANTS.values()
    ]
