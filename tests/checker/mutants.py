"""Tiny proven instances of every kind, and small changes to them that often make the statement false."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from dokimos.checker import prove
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.base import Draft, Unusable
from dokimos.constructions.knobs import make_knobs
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.properties.decimal_text import exact_decimal
from dokimos.properties.reading import read_vnnlib
from dokimos.provers.base import NoProof
from dokimos.provers.reference import decide
from dokimos.suites.instance import Certificate, Claim, Instance, Label, Semantics, Truth
from tests.checker.files import instance_of, question

Rng = np.random.Generator


@dataclass(frozen=True)
class Statement:
    """Two files taken apart, and what is said of them."""

    network: bytes
    bounds: tuple[tuple[Fraction, Fraction], ...]
    outputs: int
    unsafe: str
    truth: Truth

    @property
    def instance(self) -> Instance:
        spelt = [(exact_decimal(a), exact_decimal(b)) for a, b in self.bounds]
        return instance_of(self.network, question(spelt, self.outputs, self.unsafe))


def statement_of(draft: Draft, *, margin: bool) -> Statement:
    """The draft with its proven margin, or with the label alone; only for the reals."""
    (case,) = draft.question.cases
    outputs = draft.question.output_size
    others = " ".join(f"(and (<= Y_0 Y_{k}))" for k in range(1, outputs))
    made = Statement(
        network=draft.network,
        bounds=tuple(zip(case.box.lower, case.box.upper, strict=True)),
        outputs=outputs,
        unsafe=f"(or {others})",
        truth=Truth(
            label=draft.label,
            claims={Semantics.REAL: Claim(proven=True, margin=Fraction(0))},
            certificate=draft.certificate,
            network_sha256="",
            property_sha256="",
            witness=draft.witness,
        ),
    )
    instance = made.instance
    proven = prove(instance, draft.certificate, draft.label, draft.witness)
    claim = Claim(proven=True, margin=proven.real if margin else Fraction(0))
    bound = replace(
        made.truth,
        claims={Semantics.REAL: claim},
        network_sha256=instance.network_sha256,
        property_sha256=instance.property_sha256,
    )
    return replace(made, truth=bound)


CONVOLUTION = {"size": 3, "channels": 1, "depth": 1}

#: The families and knobs that give tiny instances, by the kind of proof of their `unsat` half.
TINY: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "constant-on-box": [
        (
            "constant-on-box",
            {"inputs": 2, "latent": 1, "depth": 1, "width": 2, "classes": 2, "epsilon": 0.25},
        ),
        ("constant-on-box", {"inputs": 3, "latent": 2, "depth": 2, "width": 3, "classes": 3, "slack": 0}),
        (
            "constant-on-box",
            {"inputs": 2, "latent": 2, "depth": 1, "width": 2, "reach": 1, "margin": 0.001},
        ),
    ],
    "contraction": [
        ("contractive-cnn", {**CONVOLUTION, "classes": 2, "epsilon": 0.01, "slack": 0.0001}),
        ("contractive-cnn", {**CONVOLUTION, "classes": 3, "epsilon": 0.02, "slack": 0.001, "centred": 0}),
        ("contractive-cnn", {**CONVOLUTION, "classes": 2, "epsilon": 0.002, "cut": 0.5}),
    ],
    "slopes-and-splits": [
        ("exclusive-pairs", {"inputs": 2, "pairs": 1, "classes": 2, "gamma": 0.01}),
        ("exclusive-pairs", {"inputs": 3, "pairs": 1, "classes": 3, "gamma": 0.0005}),
        ("exclusive-pairs", {"inputs": 2, "pairs": 2, "classes": 2, "gamma": 0.02}),
        ("exclusive-pairs", {"inputs": 2, "pairs": 3, "classes": 2, "gamma": 0.01}),
    ],
    "convex-corners": [
        ("convex-corners", {"inputs": 2, "block": 2, "hinges": 2, "classes": 2, "margin": 0.01}),
        ("convex-corners", {"inputs": 3, "block": 3, "hinges": 4, "classes": 3, "margin": 0.001}),
        ("convex-corners", {"inputs": 4, "block": 2, "hinges": 3, "classes": 2, "margin": 0.00001}),
    ],
    "ordered-pairs": [
        ("paired-bias", {"size": 3, "depth": 0, "pairs": 2, "classes": 2, "margin": 0.001}),
        ("paired-bias", {"size": 3, "depth": 0, "pairs": 3, "classes": 3, "margin": 0.00002}),
        ("paired-bias", {"size": 3, "depth": 1, "channels": 1, "pairs": 2, "classes": 2, "margin": 0.001}),
    ],
    "relu-tree": [
        ("exact-radius", {"inputs": 2, "width": 2, "depth": 2, "classes": 2, "distance": 0.3}),
        ("exact-radius", {"inputs": 3, "width": 3, "depth": 1, "classes": 3, "distance": 0.5}),
        ("exact-radius", {"inputs": 2, "width": 4, "depth": 1, "classes": 2, "slack": 0.999}),
    ],
}


def drafts(family: str, seed: int, **knobs: Any) -> tuple[Draft, Draft]:
    construction = CONSTRUCTIONS[family]
    chosen = make_knobs(construction.knobs_class, knobs, family=family)
    rng = np.random.default_rng(seed)
    while True:
        try:
            return construction.construct(chosen, rng)
        except (Unusable, NoProof):
            continue


def searched(base: Statement) -> Statement:
    """The same statement, with a proof that the reference verifier finds for it."""
    instance = base.instance
    asked = read_vnnlib(instance.property_file, file="p")
    found = decide(read_onnx(instance.network_file), asked, seconds=60)
    assert found.certificate is not None, found
    margin = prove(instance, found.certificate, Label.UNSAT, None).real
    wanted = base.truth.claims[Semantics.REAL].margin
    claims = {Semantics.REAL: Claim(proven=True, margin=margin if wanted else Fraction(0))}
    return replace(base, truth=replace(base.truth, certificate=found.certificate, claims=claims))


@cache
def base_statements(kind: str) -> list[Statement]:
    """Proven statements of one kind, with and without a margin; trees of both arithmetics."""
    families = TINY.get(kind) or [entry for entries in TINY.values() for entry in entries]
    half = 1 if kind == "witness" else 0
    made = [
        statement_of(drafts(family, seed, **knobs)[half], margin=bool((seed + number) % 2))
        for number, (family, knobs) in enumerate(families)
        for seed in range(2)
    ]
    if kind == "relu-tree":
        others = [base for each in TINY if each != kind for base in base_statements(each)]
        return made + [searched(base) for base in [*made[:2], *others]]
    return made


# Changes ------------------------------------------------------------------------------------------

Mutator = Callable[[Statement, Rng, list[Statement]], Statement]


def _with_tensors(base: Statement, change: Callable[[dict[str, Any]], None]) -> Statement:
    model = onnx.load_from_string(base.network)
    arrays = {t.name: numpy_helper.to_array(t).copy() for t in model.graph.initializer}
    change(arrays)
    del model.graph.initializer[:]
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items())
    return replace(base, network=bytes(model.SerializeToString(deterministic=True)))


def _one_weight(base: Statement, rng: Rng, change: Callable[[Any], Any]) -> Statement:
    def apply(arrays: dict[str, Any]) -> None:
        name = sorted(arrays)[rng.integers(len(arrays))]
        flat = arrays[name].reshape(-1)
        at = rng.integers(len(flat))
        flat[at] = np.float32(change(flat[at]))

    return _with_tensors(base, apply)


def ulp(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """One weight or bias to the next float32."""
    towards = np.float32(rng.choice([-np.inf, np.inf]))
    return _one_weight(base, rng, lambda w: np.nextafter(w, towards))


def factor(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    by = rng.choice([-1.0, 0.0, 0.5, 0.99, 1.01, 2.0, 8.0])
    return _one_weight(base, rng, lambda w: w * by)


def nudge(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """One weight or bias moved, by the size of a margin or more."""
    by = rng.choice([-1, 1]) * 10.0 ** rng.uniform(-4, 0.5)
    return _one_weight(base, rng, lambda w: w + by)


def bias(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """A bias of the first or of the last layer moved: the common way to lose a margin."""

    def apply(arrays: dict[str, Any]) -> None:
        names = sorted((n for n in arrays if n.startswith("bias")), key=lambda n: int(n.split("_")[1]))
        array = arrays[names[rng.choice([0, -1])]]
        by = rng.choice([-1, 1]) * 10.0 ** rng.uniform(-3.5, 0)
        array[rng.integers(len(array))] += np.float32(by)

    return _with_tensors(base, apply)


def swap_entries(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """Two entries of one tensor exchanged, as in a pair of biases."""

    def apply(arrays: dict[str, Any]) -> None:
        names = sorted(n for n in arrays if arrays[n].size > 1)
        flat = arrays[names[rng.integers(len(names))]].reshape(-1)
        i = rng.integers(len(flat) - 1)
        flat[i], flat[i + 1] = flat[i + 1], flat[i]

    return _with_tensors(base, apply)


def box(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """The box wider, narrower or elsewhere."""
    scale = Fraction(float(rng.choice([0.25, 1, 1.0625, 1.5, 4])))
    shift = Fraction(int(rng.integers(-3, 4)), 4)
    moved = []
    for low, high in base.bounds:
        middle, radius = (low + high) / 2 + shift, (high - low) / 2 * scale
        moved.append((middle - radius, middle + radius))
    return replace(base, bounds=tuple(moved))


def one_face(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """One face of the box moved out, or past the other (which leaves the box empty)."""
    at = int(rng.integers(len(base.bounds)))
    low, high = base.bounds[at]
    by = Fraction(float(rng.choice([-0.75, 2.0**-20, 0.0625, 0.5, 2.0])))
    changed = (low - by, high) if rng.random() < 0.5 else (low, high + by)
    return replace(base, bounds=(*base.bounds[:at], changed, *base.bounds[at + 1 :]))


def constraint(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """Another class, direction or bound."""
    k = int(rng.integers(1, base.outputs))
    level = exact_decimal(Fraction(int(rng.integers(-64, 65)), 2 ** int(rng.integers(5, 14))))
    choices = [
        f"(>= Y_0 Y_{k})",
        f"(> Y_0 Y_{k})",
        f"(< Y_0 Y_{k})",
        f"(<= Y_{k} Y_0)",
        f"(<= Y_0 (+ Y_{k} {level}))",
        f"(<= (+ Y_0 {level}) Y_{k})",
        f"(<= Y_0 {level})",
        f"(>= Y_{k} {level})",
        f"(or (and (<= Y_0 Y_{k})) (and (<= Y_0 {level})))",
        f"(and (<= Y_0 Y_{k}) (<= Y_0 {level}))",
        f"(and (<= Y_0 (+ Y_{k} 1.0)) (>= Y_0 {level}))",
        f"(<= Y_0 (+ Y_{k} X_0))",
        f"(<= (+ Y_0 X_0) (+ Y_{k} X_1))",
    ]
    return replace(base, unsafe=choices[rng.integers(len(choices))])


def relabel(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """The other label, with a proof of its kind taken from elsewhere."""
    if base.truth.label is Label.SAT:
        borrowed = _borrowed(rng, all_, Label.UNSAT)
        return replace(
            base, truth=replace(base.truth, label=Label.UNSAT, witness=None, certificate=borrowed)
        )
    point = tuple(low + (high - low) * Fraction(int(rng.integers(0, 5)), 4) for low, high in base.bounds)
    truth = replace(base.truth, label=Label.SAT, witness=point, certificate=Certificate("witness"))
    return replace(base, truth=truth)


def _borrowed(rng: Rng, all_: list[Statement], label: Label) -> Certificate:
    """The proof of one of them with that label; there may be none that is `sat`."""
    found = [s.truth.certificate for s in all_ if s.truth.label is label]
    return found[rng.integers(len(found))] if found else Certificate("witness")


def nodes(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """A ReLU left out, or one put in before the output."""
    model = onnx.load_from_string(base.network)
    chain = list(model.graph.node)
    places = [i for i, node in enumerate(chain[:-1]) if node.op_type == "Relu"]
    if places and rng.random() < 0.7:
        at = places[rng.integers(len(places))]
        chain[at + 1].input[0] = chain[at].input[0]
        del chain[at]
    else:
        before = f"before_{len(chain)}"
        chain[-1].output[0] = before
        chain.append(onnx.helper.make_node("Relu", [before], ["Y"]))
    del model.graph.node[:]
    model.graph.node.extend(chain)
    return replace(base, network=bytes(model.SerializeToString(deterministic=True)))


def data(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """Other slopes, pairs or names; another kind; another margin."""
    old = base.truth.certificate
    changed = {name: list(v) if isinstance(v, list) else v for name, v in old.data.items()}
    if "slopes" in changed and rng.random() < 0.7:
        changed["slopes"] = [str(Fraction(int(rng.integers(-1, 10)), 8)) for _ in changed["slopes"]]
    elif "trees" in changed and rng.random() < 0.7:
        changed["trees"] = [_other_tree(tree, rng) for tree in changed["trees"]]
    elif "pairs" in changed and rng.random() < 0.7:
        changed["pairs"] = [pair[:: rng.choice([1, -1])] for pair in changed["pairs"]][: rng.integers(4)]
    else:
        claims = {Semantics.REAL: Claim(proven=True, margin=Fraction(int(rng.integers(1, 100)), 100))}
        return replace(base, truth=replace(base.truth, claims=claims))
    return replace(base, truth=replace(base.truth, certificate=Certificate(old.kind, changed)))


def _other_tree(tree: dict[str, Any], rng: Rng) -> dict[str, Any]:
    """A leaf's multipliers changed, or the first question turned into another."""
    leaves = [dict(leaf) for leaf in tree["leaves"]]
    at = int(rng.integers(len(leaves)))
    choices = dict(leaves[at]["choices"])
    part = str(rng.choice(["constraints", *sorted(choices)]))
    by = Fraction(int(rng.integers(-1, 9)), 4)
    if part == "constraints":
        leaves[at][part] = [str(Fraction(m) * by) for m in leaves[at][part]]
    else:
        leaves[at]["choices"] = {
            **choices,
            part: {k: str(Fraction(m) * by) for k, m in choices[part].items()},
        }
    splits = list(tree["splits"])
    if rng.random() < 0.3:
        splits[0] += int(rng.integers(0, 2))
    return {"splits": splits, "leaves": leaves}


def other_proof(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """The proof of another instance."""
    certificate = _borrowed(rng, all_, base.truth.label)
    return replace(base, truth=replace(base.truth, certificate=certificate))


def other_network(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """The network of another instance of the same sizes, often the twin's."""
    sizes = len(base.bounds), base.outputs
    fitting = [s for s in all_ if (len(s.bounds), s.outputs) == sizes and s.network != base.network]
    return replace(base, network=fitting[rng.integers(len(fitting))].network) if fitting else base


def witness(base: Statement, rng: Rng, all_: list[Statement]) -> Statement:
    """The witness moved: to the centre, out of the box, by an ulp, a little, to a corner."""
    if base.truth.witness is None:
        return bias(base, rng, all_)
    point = list(base.truth.witness)
    if not point:
        return bias(base, rng, all_)
    at = int(rng.integers(min(len(point), len(base.bounds))))
    low, high = base.bounds[at]
    way = rng.integers(6)
    if way == 0:
        point = [(a + b) / 2 for a, b in base.bounds]
    elif way == 1:
        point[at] = high + Fraction(1, 2**40)
    elif way == 2:
        point[at] = Fraction(float(np.nextafter(np.float32(float(point[at])), np.float32(np.inf))))
    elif way == 3:
        point[at] += (high - low) * Fraction(int(rng.integers(-8, 9)), 32)
    elif way == 4:
        point = [(a, b)[int(rng.integers(2))] for a, b in base.bounds]
    else:
        point = point[:-1] if rng.random() < 0.5 else [*point, Fraction(0)]
    return replace(base, truth=replace(base.truth, witness=tuple(point)))


MUTATORS: tuple[Mutator, ...] = (
    *(ulp, factor, nudge, bias, bias, swap_entries, box, one_face, constraint, constraint),
    *(relabel, nodes, data, other_proof, other_network, witness),
)
