"""Writes the corpus of proofs: `python -m tests.corpus.make_certificates` (the same bytes every time).

Each folder of certificates/accept, /reject and /malformed holds a network, a property and a truth. The
first must be accepted, the second refused as invalid, the third refused as unreadable.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dokimos.checker.linear.cover import pack
from dokimos.suites.instance import Instance, Label, Truth
from dokimos.suites.suite_files import dump_truth
from tests.checker.files import instance_of, lines, model, question, repaired, stated
from tests.checker.linear.test_proof import CONTENT, KINKS, pulls
from tests.checker.statements import TINY, base_statements
from tests.checker.test_check import GONE
from tests.checker.test_one_ulp import PAIRS, SLOPES, corners, exclusive, pairs

CORPUS = Path(__file__).parent / "certificates"
#: Y = max(0, x) − max(0, x − z) + 2·|z| >= |z|: the first two ReLUs say little by themselves.
COPIES = model(
    [("Gemm", ["X", "w"], "h"), ("Relu", ["h"], "r"), ("Gemm", ["r", "v"], "Y")],
    {"w": [[1, 1, 0, 0], [0, -1, 1, -1]], "v": [[1], [-1], [2], [2]]},
    [1, 2],
    [1, 1],
)
APART = question([(-9, 9), (-1, 1)], 1, "(<= Y_0 -2)")
#: Y = |x| + |x − ½| >= ½, cut at both kinks, with the lines and multipliers that show it.
CLOSED = {**KINKS, **pulls(2.0)}
ASKED = question([(-1, 1)], 1, "(<= Y_0 0.4375)")
#: What is further below ½ than half a unit in the last place of float32.
JUST_TRUE = question([(-1, 1)], 1, "(<= Y_0 0.4999999701976776123046875)")


def proof(**changes: Any) -> dict[str, Any]:
    """The proof of what is asked of Y, changed."""
    return {"questions": [{**CLOSED, **changes}]}


def in_pairs(*pairs: tuple[int, int]) -> dict[str, Any]:
    """The proof of what is asked of the copies, by these pairs of ReLUs."""
    return {"questions": [{"refined": [5]}], "pairs": [list(pair) for pair in pairs]}


def packed(*numbers: float, form: str = "<f4") -> str:
    return pack(np.array(numbers, dtype=form).tobytes())


#: The same with every line and multiplier in full.
LONG = proof(
    lines=packed(0, 1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 0, form="<f8"),
    multipliers=packed(2, 0, 0, 0, 2, form="<f8"),
)
#: Bounds lose a little to the rounding of float64.
SURELY = 1 - Fraction(1, 2**20)


def deep_copies() -> tuple[bytes, bytes]:
    """The copies with one ReLU more behind them."""
    nodes = [
        ("Gemm", ["X", "w"], "h"),
        ("Relu", ["h"], "r"),
        ("Gemm", ["r", "v"], "s"),
        ("Relu", ["s"], "Y"),
    ]
    weights = {"w": [[1, 1, 0, 0], [0, -1, 1, -1]], "v": [[1], [-1], [2], [2]]}
    return model(nodes, weights, [1, 2], [1, 1]), APART


class Entry(NamedTuple):
    """One folder of the corpus."""

    verdict: str
    name: str
    instance: Instance
    truth: str


def written(truth: Truth) -> str:
    return dump_truth(truth, origin={})


def edited(text: str, **changes: Any) -> str:
    """The JSON of a truth with top-level keys changed, or left out where None."""
    document = {**json.loads(text), **changes}
    return json.dumps({k: v for k, v in document.items() if v is not None}, indent=1) + "\n"


def accepted() -> Iterator[Entry]:
    for kind in (*TINY, "linear", "linear by intervals", "linear in pairs", "witness"):
        base = base_statements(kind)[0]
        yield Entry("accept", kind.replace(" ", "-"), base.instance, written(base.truth))
    half_ulp, ulp = Fraction(1, 2**24), Fraction(1, 2**23)
    for kind, data, instance, margin in (
        ("linear", SLOPES, exclusive(np.float32(1 - 2.0**-24)), half_ulp * SURELY),
        ("convex-corners", {}, corners(np.float32(1 + 2.0**-23)), ulp),
        ("ordered-pairs", PAIRS, pairs(np.float32(1 + 2.0**-23)), ulp),
    ):
        yield Entry(
            "accept", f"{kind}-by-one-ulp", instance, written(stated(instance, kind, data, real=margin))
        )
    tie, corner = corners(1), (Fraction(1, 2), Fraction(-1, 2))
    truth = stated(tie, "witness", label=Label.SAT, witness=corner)
    yield Entry("accept", "witness-of-a-tie", tie, written(truth))
    network = model([("Relu", ["X"], "r"), ("Add", ["r", "one"], "Y")], {"one": [1.0]}, [1, 1], [1, 1])
    union = (
        b"(declare-const X_0 Real)\n(declare-const Y_0 Real)\n"
        b"(assert (or (and (>= X_0 -2) (<= X_0 -1) (<= Y_0 0.5)) (and (>= X_0 1) (<= X_0 2) (< Y_0 1))))\n"
    )
    both = instance_of(network, union)

    said = stated(both, "linear", lines(0.125, questions=2), float32=Fraction(0))
    yield Entry("accept", "two-boxes", both, written(said))
    batch = model([("Gemm", ["X", "w", "b"], "Y")], {"w": np.eye(2), "b": [[1.0, 2.0]]}, [1, 2], [1, 2])
    shaped = instance_of(batch, question([(0, 1)] * 2, 2, "(<= Y_1 1)"))
    plain = stated(shaped, "convex-corners", real=Fraction(1))
    yield Entry("accept", "a-bias-with-a-row", shaped, written(plain))
    for name, content, asked, data, margin in (
        ("cut-at-units", CONTENT, ASKED, proof(), Fraction(1, 16)),
        ("with-long-numbers", CONTENT, ASKED, LONG, Fraction(1, 16)),
        ("cut-by-half-an-ulp", CONTENT, JUST_TRUE, proof(), Fraction(1, 2**25)),
        ("with-a-pair", COPIES, APART, in_pairs((0, 1)), Fraction(1, 2)),
    ):
        made = instance_of(content, asked)
        said = stated(made, "linear", data, real=margin * SURELY)
        yield Entry("accept", f"linear-{name}", made, written(said))


def rejected() -> Iterator[Entry]:
    for kind, data, instance in (
        ("linear", SLOPES, exclusive(1)),
        ("convex-corners", {}, corners(1)),
        ("ordered-pairs", PAIRS, pairs(1)),
    ):
        yield Entry("reject", f"{kind}-by-one-ulp", instance, written(stated(instance, kind, data)))
    for form in (*TINY, "linear", "linear by intervals", "linear in pairs", "witness"):
        base, kind = base_statements(form)[0], form.replace(" ", "-")
        hashed = replace(base.truth, network_sha256="0" * 64)
        yield Entry("reject", f"{kind}-of-another-file", base.instance, written(hashed))
        claims = {s: replace(c, margin=Fraction(9)) for s, c in base.truth.claims.items()}
        greedy = replace(base.truth, claims=claims)
        yield Entry("reject", f"{kind}-with-too-large-a-margin", base.instance, written(greedy))
    twin, robust = base_statements("witness")[0], base_statements("linear by slopes")[0]
    swapped = replace(robust.instance, network_file=twin.network)
    yield Entry("reject", "the-twin-said-to-hold", swapped, written(repaired(robust.truth, swapped)))
    swapped = replace(twin.instance, network_file=robust.network)
    yield Entry("reject", "the-original-said-to-fail", swapped, written(repaired(twin.truth, swapped)))
    assert twin.truth.witness is not None
    for name, point in (
        ("in-the-centre", tuple((a + b) / 2 for a, b in twin.bounds)),
        ("out-of-the-box", tuple(b + Fraction(1, 2**20) for _, b in twin.bounds)),
        ("too-short", twin.truth.witness[:-1]),
    ):
        truth = replace(twin.truth, witness=point)
        yield Entry("reject", f"a-witness-{name}", twin.instance, written(truth))
    batch = model(
        [("Conv", ["X", "w"], "c"), ("Add", ["c", "zero"], "Y")],
        {"w": np.ones((1, 1, 1, 1)), "zero": np.zeros((2, 1, 1, 1))},
        [2, 1, 1, 1],
        [2, 1, 1, 1],
    )
    second = instance_of(batch, question([(1, 2), (0, 2)], 2, "(<= Y_1 0.5)"))
    yield Entry("reject", "the-second-image", second, written(stated(second, "convex-corners")))
    rows = model(
        [("Reshape", ["X", "i_in"], "a"), ("Gemm", ["a", "w", "b"], "g"), ("Reshape", ["g", "i_out"], "Y")],
        {"w": np.zeros((2, 2)), "b": [[-1.0], [1.0]], "i_in": np.array([2, 2]), "i_out": np.array([1, 4])},
        [1, 4],
        [1, 4],
    )
    lower = instance_of(rows, question([(0, 1)] * 4, 4, "(<= Y_1 0)"))
    yield Entry("reject", "a-bias-for-each-row", lower, written(stated(lower, "convex-corners")))
    zero = packed(0, 0, 0, form="u1")
    for name, content, asked, data in (
        ("cut-by-half-an-ulp", CONTENT, question([(-1, 1)], 1, "(<= Y_0 0.5)"), proof()),
        ("of-what-is-false", CONTENT, question([(-1, 1)], 1, "(<= Y_0 0.5625)"), proof()),
        ("with-a-leaf-that-says-nothing", CONTENT, ASKED, proof(multipliers="")),
        ("with-a-negative-multiplier", CONTENT, ASKED, proof(multipliers=packed(2, 0, -1, 0, 2))),
        ("with-an-endless-multiplier", CONTENT, ASKED, proof(multipliers=packed(2, 0, np.inf, 0, 2))),
        ("with-a-multiplier-that-is-none", CONTENT, ASKED, proof(multipliers=packed(2, 0, np.nan, 0, 2))),
        ("with-an-entry-beyond-the-network", CONTENT, ASKED, proof(tree=[10, -1, 3, -1, -1])),
        ("with-a-tensor-beyond-the-network", CONTENT, ASKED, proof(refined=[4])),
        ("with-a-tensor-again-beyond-the-network", CONTENT, ASKED, proof(again=[4])),
        ("with-a-tree-too-short", CONTENT, ASKED, {"questions": [{"tree": [1, -1, 3, -1]}]}),
        ("with-a-tree-too-long", CONTENT, ASKED, {"questions": [{"tree": [1, -1, -1, -1]}]}),
        ("with-weights-of-zero-where-there-are-runs", CONTENT, ASKED, proof(weights=zero)),
        ("with-own-boxes-cut-at-a-unit", CONTENT, ASKED, proof(own=True)),
        ("without-the-pair", COPIES, APART, {"questions": [{"refined": [1]}]}),
        ("with-the-wrong-pair", COPIES, APART, in_pairs((0, 2))),
        ("with-a-pair-beyond-the-network", COPIES, APART, in_pairs((0, 1), (2, 4))),
        ("with-the-first-of-a-pair-beyond-the-network", COPIES, APART, in_pairs((4, 1))),
        ("with-one-second-of-two-pairs", COPIES, APART, in_pairs((0, 1), (2, 1))),
        ("with-a-first-that-is-a-second", COPIES, APART, in_pairs((0, 1), (1, 2))),
        ("with-a-pair-of-itself", COPIES, APART, in_pairs((1, 1))),
        ("with-a-pair-of-two-tensors", *deep_copies(), in_pairs((0, 4))),
    ):
        made = instance_of(content, asked)
        yield Entry("reject", f"linear-{name}", made, written(stated(made, "linear", data)))
    made = instance_of(CONTENT, ASKED)
    greedy = stated(made, "linear", proof(), real=Fraction(1, 16) + Fraction(1, 2**60))
    yield Entry("reject", "linear-cut-at-units-with-too-large-a-margin", made, written(greedy))
    foreign = replace(stated(made, "linear", proof()), network_sha256="0" * 64)
    yield Entry("reject", "linear-cut-at-units-of-another-file", made, written(foreign))


def malformed() -> Iterator[Entry]:
    base = base_statements("linear by slopes")[0]
    good, instance = written(base.truth), base.instance
    document = json.loads(good)
    texts = {
        "empty": "",
        "truncated": good[: len(good) // 2],
        "nested-too-deeply": "[" * 20_000,
        "label-twice": good.replace('"label"', '"label": "sat",\n "label"', 1),
        "unknown-key": edited(good, extra=1),
        "another-format": edited(good, format=2),
        "format-true": edited(good, format=True),
        "a-schema-instead-of-a-format": edited(good, format=None, schema=1),
        "no-label": edited(good, label=None),
        "label-in-capitals": edited(good, label="UNSAT"),
        "no-hash": edited(good, sha256={"network": document["sha256"]["network"]}),
        "margin-as-a-number": edited(good, semantics={"real": {"proven": True, "margin": 0.1}}),
        "margin-1-over-0": edited(good, semantics={"real": {"proven": True, "margin": "1/0"}}),
        "margin-too-small": edited(good, semantics={"real": {"proven": True, "margin": "1e-401"}}),
        "margin-negative": edited(good, semantics={"real": {"proven": True, "margin": "-1"}}),
        "proven-1": edited(good, semantics={"real": {"proven": 1, "margin": "0"}}),
        "unknown-kind": edited(good, certificate={"kind": "trust-me", "data": {}}),
        "pair-of-booleans": edited(
            good,
            certificate={"kind": "ordered-pairs", "data": {"convolution": "c", "pairs": [[True, False]]}},
        ),
    }
    for name, text in texts.items():
        yield Entry("malformed", name, instance, text)
    made = instance_of(CONTENT, ASKED)
    for name, data in (
        ("of-nothing", {}),
        ("for-no-conjunction", {"questions": []}),
        ("for-two-conjunctions", {"questions": [CLOSED, CLOSED]}),
        ("with-lines-truncated", proof(lines=KINKS["lines"][:-8])),
        ("with-too-few-lines", proof(lines=packed(0, 0, 0, form="u1"))),
        ("with-lines-not-in-base64", proof(lines="lines!")),
        ("with-lines-not-packed", proof(lines="AAAA")),
        ("with-lines-as-numbers", proof(lines=[0.5] * 4)),
        ("with-a-bomb", proof(lines=pack(bytes(1 << 24)))),
        ("with-too-few-multipliers", proof(multipliers=packed(2, 0))),
        ("with-multipliers-where-nothing-is-cut", {"questions": [{"multipliers": packed(2)}]}),
        ("with-too-many-weights", proof(weights=packed(*[1] * 6, form="u1"))),
        ("with-roots-for-nothing", proof(root=packed(0, 0, form="u1"))),
        ("with-a-cut-at-infinity", proof(at={"0": 10**400})),
        ("with-a-tree-of-true", proof(tree=[True, -1, 3, -1, -1])),
        ("with-a-tree-of-words", proof(tree=["1", -1, 3, -1, -1])),
        ("with-an-entry-below-a-leaf", proof(tree=[-2])),
        ("with-a-tensor-below-the-first", proof(refined=[-1])),
        ("with-own-as-a-number", proof(own=1)),
        ("with-pairs-of-three", {**proof(), "pairs": [[0, 1, 2]]}),
        ("with-pairs-below-0", {**proof(), "pairs": [[0, -1]]}),
        ("with-more", proof(more=1)),
    ):
        yield Entry("malformed", f"linear-{name}", made, written(stated(made, "linear", data)))
    for gone in GONE:
        yield Entry("malformed", f"the-kind-{gone}", made, written(stated(made, gone, {})))
    for name, damaged in (
        ("network-truncated", replace(instance, network_file=instance.network_file[:-100])),
        ("network-empty", replace(instance, network_file=b"")),
        ("property-truncated", replace(instance, property_file=instance.property_file[:-20])),
        ("property-empty", replace(instance, property_file=b"")),
        ("property-not-text", replace(instance, property_file=b"\xff\xfe\x00")),
        ("property-nested-too-deeply", replace(instance, property_file=b"(assert " + b"(and " * 5000)),
    ):
        yield Entry("malformed", name, damaged, written(repaired(base.truth, damaged)))


def entries() -> list[Entry]:
    return [*accepted(), *rejected(), *malformed()]


def main() -> None:
    for entry in entries():
        folder = CORPUS / entry.verdict / entry.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "network.onnx").write_bytes(entry.instance.network_file)
        (folder / "property.vnnlib").write_bytes(entry.instance.property_file)
        (folder / "truth.json").write_text(entry.truth, encoding="utf-8")


if __name__ == "__main__":
    main()
