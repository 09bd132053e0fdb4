"""Writes the corpus of proofs: `python -m tests.corpus.make_certificates` (the same bytes every time).

Each folder of certificates/accept, /reject and /malformed holds a network, a property and a truth. The
first must be accepted, the second refused as invalid, the third refused as unreadable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dokimos.suites.instance import Instance, Label, Truth
from dokimos.suites.suite_files import dump_truth
from tests.checker.files import instance_of, model, question, repaired, stated
from tests.checker.proofs.test_relu_tree import ASKED, HAT, LEAF, proof
from tests.checker.proofs.test_relu_tree_outward import NO_CHOICES, leaf_with
from tests.checker.statements import TINY, base_statements
from tests.checker.test_one_ulp import PAIRS, SLOPES, corners, exclusive, pairs

CORPUS = Path(__file__).parent / "certificates"
#: Where x >= 0, 1 − y >= x >= (1 − β)·x for every multiplier β >= 0; with 1 the bound is 0.
RISING = leaf_with(multipliers={"0": "1"})
UNSPLIT = proof(splits=[-1], leaves=[LEAF])


def outward(**changes: Any) -> dict[str, Any]:
    """The proof of `proof`, its leaves closed in float64 intervals."""
    tree = {"splits": [0, -1, -1], "leaves": [RISING, NO_CHOICES], **changes}
    return {"arithmetic": "outward", "trees": [tree]}


def hat_above(bound: str) -> bytes:
    """Whether 1 − |x| can be that large on [−1, 1]: it can be 1, at 0."""
    return question([(-1, 1)], 1, f"(>= Y_0 {bound})")


#: What a tree of the wrong shape has instead, given one of its leaves.
MISSHAPEN: dict[str, Callable[[Any], dict[str, Any]]] = {
    "too-short": lambda leaf: {"splits": [0, -1], "leaves": [leaf]},
    "too-long": lambda leaf: {"splits": [-1, -1]},
    "asks-twice": lambda leaf: {"splits": [0, 0, -1, -1, -1], "leaves": [leaf] * 3},
    "without-a-leaf": lambda leaf: {"leaves": [leaf]},
    "of-true": lambda leaf: {"splits": [True, -1, -1]},
}


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
    for kind in (*TINY, "witness"):
        base = base_statements(kind)[0]
        yield Entry("accept", kind, base.instance, written(base.truth))
    half_ulp, ulp = Fraction(1, 2**24), Fraction(1, 2**23)
    for kind, data, instance, margin in (
        ("slopes-and-splits", SLOPES, exclusive(np.float32(1 - 2.0**-24)), half_ulp),
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
    # At slope 0 the second box gives no margin, at slope 1 the first gives none.
    said = stated(both, "slopes-and-splits", {"slopes": ["0.125"]}, float32=Fraction(0))
    yield Entry("accept", "two-boxes", both, written(said))
    batch = model([("Gemm", ["X", "w", "b"], "Y")], {"w": np.eye(2), "b": [[1.0, 2.0]]}, [1, 2], [1, 2])
    shaped = instance_of(batch, question([(0, 1)] * 2, 2, "(<= Y_1 1)"))
    plain = stated(shaped, "convex-corners", real=Fraction(1))
    yield Entry("accept", "a-bias-with-a-row", shaped, written(plain))
    for name, data, asked, margin in (
        ("exact", proof(), ASKED, Fraction(1, 4)),
        ("exact-without-a-split", UNSPLIT, ASKED, Fraction(1, 4)),
        ("exact-by-one-ulp", proof(), hat_above("1.00000011920928955078125"), Fraction(1, 2**23)),
        ("outward", outward(), ASKED, Fraction(1, 5)),
        ("outward-by-one-ulp", outward(), hat_above("1.00000011920928955078125"), Fraction(1, 2**24)),
    ):
        hat = instance_of(HAT, asked)
        said = stated(hat, "relu-tree", data, real=margin)
        yield Entry("accept", f"relu-tree-{name}", hat, written(said))


def rejected() -> Iterator[Entry]:
    for kind, data, instance in (
        ("slopes-and-splits", SLOPES, exclusive(1)),
        ("convex-corners", {}, corners(1)),
        ("ordered-pairs", PAIRS, pairs(1)),
    ):
        yield Entry("reject", f"{kind}-by-one-ulp", instance, written(stated(instance, kind, data)))
    for kind in (*TINY, "witness"):
        base = base_statements(kind)[0]
        hashed = replace(base.truth, network_sha256="0" * 64)
        yield Entry("reject", f"{kind}-of-another-file", base.instance, written(hashed))
        claims = {s: replace(c, margin=Fraction(9)) for s, c in base.truth.claims.items()}
        greedy = replace(base.truth, claims=claims)
        yield Entry("reject", f"{kind}-with-too-large-a-margin", base.instance, written(greedy))
    twin, robust = base_statements("witness")[0], base_statements("slopes-and-splits")[0]
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
    negative = {**LEAF, "choices": {"below": {"0": "-1"}, "above": {}}}
    stranger = {**LEAF, "choices": {"below": {"2": "1"}, "above": {}}}
    nothing = {**LEAF, "constraints": ["0"]}
    steep = leaf_with(slopes={"0": "1.5"})
    for name, data, asked in (
        ("exact-by-one-ulp", proof(), hat_above("1")),
        ("exact-of-what-is-false", proof(), hat_above("0.75")),
        ("exact-with-a-negative-multiplier", proof(leaves=[LEAF, negative]), ASKED),
        ("exact-with-a-relu-beyond-the-network", proof(leaves=[LEAF, stranger]), ASKED),
        ("exact-with-a-leaf-that-says-nothing", proof(leaves=[LEAF, nothing]), ASKED),
        ("outward-by-one-ulp", outward(), hat_above("1")),
        ("outward-of-what-is-false", outward(), hat_above("0.75")),
        ("outward-with-a-slope-above-1", outward(leaves=[RISING, steep]), ASKED),
        (
            "outward-with-a-negative-multiplier",
            outward(leaves=[RISING, leaf_with(multipliers={"0": "-1"})]),
            ASKED,
        ),
        (
            "outward-with-a-relu-beyond-the-network",
            outward(leaves=[RISING, leaf_with(multipliers={"2": "1"})]),
            ASKED,
        ),
        (
            "outward-with-a-leaf-that-says-nothing",
            outward(leaves=[RISING, {**NO_CHOICES, "constraints": ["0"]}]),
            ASKED,
        ),
    ):
        hat = instance_of(HAT, asked)
        yield Entry("reject", f"relu-tree-{name}", hat, written(stated(hat, "relu-tree", data)))
    hat = instance_of(HAT, ASKED)
    for name, data in (("exact", proof()), ("outward", outward())):
        greedy = stated(hat, "relu-tree", data, real=Fraction(1, 4) + Fraction(1, 2**60))
        yield Entry("reject", f"relu-tree-{name}-with-too-large-a-margin", hat, written(greedy))
        foreign = replace(stated(hat, "relu-tree", data), network_sha256="0" * 64)
        yield Entry("reject", f"relu-tree-{name}-of-another-file", hat, written(foreign))


def malformed() -> Iterator[Entry]:
    base = base_statements("slopes-and-splits")[0]
    good, instance = written(base.truth), base.instance
    document = json.loads(good)
    texts = {
        "empty": "",
        "truncated": good[: len(good) // 2],
        "nested-too-deeply": "[" * 20_000,
        "label-twice": good.replace('"label"', '"label": "sat",\n "label"', 1),
        "unknown-key": edited(good, extra=1),
        "another-format": edited(good, format=1),
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
        "no-slopes": edited(good, certificate={"kind": "slopes-and-splits", "data": {}}),
        "slopes-as-numbers": edited(
            good, certificate={"kind": "slopes-and-splits", "data": {"slopes": [0.5] * 4}}
        ),
        "slope-bomb": edited(
            good, certificate={"kind": "slopes-and-splits", "data": {"slopes": ["1e999999999"] * 4}}
        ),
        "pair-of-booleans": edited(
            good,
            certificate={"kind": "ordered-pairs", "data": {"convolution": "c", "pairs": [[True, False]]}},
        ),
    }
    for name, text in texts.items():
        yield Entry("malformed", name, instance, text)
    hat = instance_of(HAT, ASKED)
    for name, data in (
        ("exact-with-a-float", proof(leaves=[{**LEAF, "constraints": [1.0]}] * 2)),
        ("exact-for-no-conjunction", {**proof(), "trees": []}),
        ("outward-with-a-float", outward(leaves=[leaf_with(slopes={"0": 1.0})] * 2)),
        ("outward-for-no-conjunction", {**outward(), "trees": []}),
        ("outward-with-leaves-that-are-exact", {**proof(), "arithmetic": "outward"}),
        ("without-an-arithmetic", {"trees": proof()["trees"]}),
        *(
            (f"{arithmetic}-{name}", made(**changes(leaf)))
            for arithmetic, made, leaf in (("exact", proof, LEAF), ("outward", outward, NO_CHOICES))
            for name, changes in MISSHAPEN.items()
        ),
    ):
        yield Entry("malformed", f"relu-tree-{name}", hat, written(stated(hat, "relu-tree", data)))
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
