"""Tiny proven statements of every shipped kind of proof, and the sweep that each is put through."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np
import onnx

from dokimos.checker import CERTIFICATES, prove
from dokimos.constructions import CONSTRUCTIONS
from dokimos.constructions.draft import Draft, ball, disguise_drafts, first_class_loses
from dokimos.constructions.families.ops import cuts
from dokimos.engine.direct import by_intervals
from dokimos.engine.linear import LinearSearch
from dokimos.engine.outcome import SearchEffort
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import Certificate, Claim, Label, Semantics
from dokimos.suites.vnnlib.model import Box
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.testing import sweeps
from dokimos.testing.relu_oracle import ReluOracle
from dokimos.testing.statements import LabelStatement, drafts_of, statement_of
from dokimos.testing.sweeps import Rng, Sweep
from tests.checker.files import question
from tests.checker.search_oracle import SearchOracle
from tests.checker.small_networks import SmallReluNetwork

CONVOLUTION = {"size": 3, "channels": 1, "depth": 1}
BLOCKS = {"size": 2, "colours": 2, "stages": 0, "blocks": 1, "hidden": 1, "taps": 2, "pairs": 0}

#: The families and knobs that give tiny instances, by the kind and form of the proof of their `unsat` half.
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
    "linear by slopes": [
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
    "linear by cases": [
        ("exact-radius", {"inputs": 2, "width": 2, "depth": 2, "classes": 2, "distance": 0.3}),
        ("exact-radius", {"inputs": 3, "width": 3, "depth": 1, "classes": 3, "distance": 0.5}),
        ("exact-radius", {"inputs": 2, "width": 4, "depth": 1, "classes": 2, "slack": 0.999}),
    ],
}


ATTENTION: list[dict[str, Any]] = [
    {"tokens": 2, "width": 3, "value_width": 2, "classes": 3, "hinges": 2, "epsilon": 0.1},
    {"tokens": 3, "width": 4, "value_width": 2, "classes": 2, "hinges": 2, "slack": 1.001},
]
SMALL_ATTENTION = {"tokens": 2, "width": 2, "value_width": 1, "classes": 2, "hinges": 1}
GRAPH = {"nodes": 4, "degree": 2, "features": 2, "rounds": 1, "hidden": 1, "taps": 2}
TOKENS = {"size": 2, "colours": 1, "patch": 1, "width": 8, "heads": 2, "layers": 1, "taps": 3}
POLYNOMIAL = {"inputs": 2, "width": 2, "epsilon": 0.125, "buffer": 0.02}

#: The same where a search has to do as an oracle: these networks have more than ReLUs.
SEARCHED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "softmax-attention": [("softmax-attention", knobs) for knobs in (SMALL_ATTENTION, *ATTENTION)],
    "linear-attention": [
        ("linear-attention", knobs) for knobs in ({**SMALL_ATTENTION, "unstable": 1}, *ATTENTION)
    ],
    "convex-tangent": [
        ("polynomial", {**POLYNOMIAL, "degree": degree, "concave": 0}) for degree in (2, 3, 4)
    ],
    "nonexpansive": [
        ("residual", {**BLOCKS, "classes": 2, "slack": 0.001}),
        ("residual", {**BLOCKS, "blocks": 2, "classes": 3, "epsilon": 0.25}),
        ("residual", {**BLOCKS, "colours": 1, "stages": 1, "pairs": 1, "slack": 0.00001}),
        ("message-passing", {**GRAPH, "classes": 2, "slack": 0.001}),
    ],
    "fixed-routing": [
        ("transformer", {**TOKENS, "classes": 2}),
        ("transformer", {**TOKENS, "classes": 3, "layers": 2, "slack": 0.005}),
        ("transformer", {**TOKENS, "colours": 2, "slack": 0.001, "epsilon": 0.125}),
    ],
    "pinning": [("polynomial", {**POLYNOMIAL, "degree": degree, "concave": 0.5}) for degree in (2, 3)],
}


def drafts(family: str, seed: int, **knobs: Any) -> tuple[Draft, Draft]:
    return drafts_of(CONSTRUCTIONS[family], seed, **knobs)


def searched(base: LabelStatement) -> LabelStatement | None:
    """The same statement, with a proof that the reference engine soon finds for it; None if it does not."""
    instance = base.instance
    asked = read_vnnlib(instance.property_file, file="p")
    data = LinearSearch(read_onnx(instance.network_file), asked, SearchEffort(most_steps=100)).run().data
    if data is None:
        return None
    certificate = Certificate("linear", data)
    margin = prove(instance, certificate, Label.UNSAT, None).real
    wanted = base.truth.claims[Semantics.REAL].margin
    claims = {Semantics.REAL: Claim(proven=True, margin=margin if wanted else Fraction(0))}
    return replace(base, truth=replace(base.truth, certificate=certificate, claims=claims))


@cache
def base_statements(kind: str) -> list[LabelStatement]:
    """Proven statements of one kind, or of one form of it, with and without a margin."""
    if kind in MADE:
        return MADE[kind]()
    families = (TINY | SEARCHED).get(kind) or [entry for entries in TINY.values() for entry in entries]
    half = 1 if kind == "witness" else 0
    made = [
        statement_of(drafts(family, seed, **knobs)[half], margin=bool((seed + number) % 2))
        for number, (family, knobs) in enumerate(families)
        for seed in range(2)
    ]
    if kind == "linear by cases":
        others = [base for each in TINY if each != kind for base in base_statements(each)]
        found = [other for base in [*made[:2], *others] if (other := searched(base)) is not None]
        assert len(found) > 10
        return made + found
    return made


def enclosed() -> list[LabelStatement]:
    """Random ReLU networks, robust by some margin, with boxes cut until intervals do."""
    made = []
    for seed in range(6):
        drawn = SmallReluNetwork.draw(np.random.default_rng(seed), sizes=(2, 3, 2))
        robust = drawn.lifted(Fraction(1, 2) - drawn.grid_minimum())
        question = first_class_loses(ball([Fraction(0)] * 2, robust.radius), 2)
        network = robust.instance().network_file
        tree = cuts(network, question, Fraction(1, 16))
        draft = Draft(network, question, by_intervals(tree))
        made.append(statement_of(draft, margin=bool(seed % 2)))
    return made


def covered() -> list[LabelStatement]:
    """Random ReLU networks, robust by some margin, with covers by cuts of inputs or of units."""
    made = []
    for seed in range(7):  # the eighth is open after a minute
        drawn = SmallReluNetwork.draw(
            np.random.default_rng(seed), sizes=((2, 3, 2), (2, 3, 2, 2))[seed % 2]
        )
        robust = drawn.lifted(Fraction(1, 8) - drawn.grid_minimum())
        question = first_class_loses(ball([Fraction(0)] * 2, robust.radius), 2)
        content = robust.instance().network_file
        network = read_onnx(content)
        few = 0 if seed % 4 < 2 else 12
        found = LinearSearch(network, question, SearchEffort(most_steps=100), few_inputs=few).run()
        if found.data is not None:
            draft = Draft(content, question, Certificate("linear", found.data))
            made.append(statement_of(draft, margin=bool(seed % 2)))
    assert len(made) > 4
    return made


def rewritten() -> list[LabelStatement]:
    """Tiny networks in other words, by each of the steps that fit them."""
    made = []
    for number, (family, knobs) in enumerate((*TINY["linear by slopes"][:2], *TINY["convex-corners"][:1])):
        for seed, steps in enumerate((["permute", "scale"], ["duplicate"], ["split"], ["identity"])):
            (draft,) = disguise_drafts(
                drafts(family, seed, **knobs)[:1], steps, np.random.default_rng(seed)
            )
            made.append(statement_of(draft, margin=bool((number + seed) % 2)))
    tiny = {"inputs": 2, "directions": 1, "kinks": 1, "spread": 1, "pairs": 1}
    return made + [
        statement_of(drafts("dials", seed, **tiny)[0], margin=bool(seed), unsafe="(<= Y_0 0.0)")
        for seed in range(2)
    ]


def locked() -> list[LabelStatement]:
    """Locks of one bit, which two equations want to be 0 and 1."""
    smallest = {"inputs": 2, "bits": 1, "levels": 1, "weight": 1, "width": 2}
    return [
        statement_of(drafts("parity-lock", seed, **smallest, **knobs)[0], margin=bool(seed % 2))
        for seed in range(3)
        for knobs in ({"epsilon": 0.5}, {"opening": 0.75, "penalty": 0.5})
    ]


def twins(seed: int, *, deep: bool = False, falls: bool = False) -> bytes:
    """Two copies of a network of one input, on x and on x + d: its first score rises, its second is fixed.

    Random ReLUs go up and down; one that is always on makes up for what they may fall. One that `falls` is
    off up to 5/4, and makes the score fall from there on.
    """
    rng = np.random.default_rng(seed)
    hidden = 3
    weight, bias = rng.integers(-8, 9, (hidden, 1)) / 8, rng.integers(-8, 9, hidden) / 8
    weight[0], bias[0] = 1.0, 2.0
    blocks = [(np.vstack([np.hstack([weight, 0 * weight]), np.hstack([weight, weight])]), bias)]
    rising = np.abs(weight).sum() + 0.25
    if deep:
        inner = rng.integers(-4, 5, (2, hidden)) / 8
        inner[0] = [1.0, 0.0, 0.0]
        blocks.append((np.kron(np.eye(2), inner), np.array([1.0, 0.125])))
        rising, hidden = np.abs(inner[1] @ np.abs(weight)).sum() + 2.0, 2
    score = np.zeros((2, hidden))
    score[0] = [rising, *(rng.choice([-1.0, 1.0], hidden - 1))]
    if falls:
        blocks[0][0][[1, 4]] = [[1.0, 0.0], [1.0, 1.0]]
        blocks[0][1][1], score[0, 1] = -1.25, -8.0 * rising
    blocks.append((np.kron(np.eye(2), score), np.array([0.0, 2 * rising])))
    builder = ModelBuilder([2])
    for number, (weights, biases) in enumerate(blocks):
        builder = (builder.relu() if number else builder).affine(weights, np.tile(biases, 2))
    return builder.build(4)


def twin_pairs(network: Network) -> list[tuple[int, int]]:
    """Each ReLU of the first copy with that of the second, layer by layer."""
    sizes = [network.shapes[node.output][-1] for node in network.nodes if node.op == "Relu"]
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return [
        (start + k, start + size // 2 + k)
        for start, size in zip(starts, sizes, strict=True)
        for k in range(size // 2)
    ]


def in_pairs() -> list[LabelStatement]:
    """Two copies of a network, the second on a larger input, which may not decide lower.

    Some of them rise only up to 5/4, and only inputs up to 1 are asked about.
    """
    box = Box((Fraction(-1), Fraction(1, 4)), (Fraction(1), Fraction(1)))
    lower, inside = "(<= Y_1 Y_0) (<= Y_2 Y_3)", "(<= (+ X_0 X_1) 1.0)"
    asked = [(twins(seed, falls=True), f"(or (and {lower} {inside}))") for seed in range(3)]
    asked += [(twins(seed, deep=seed >= 4), f"(or (and {lower}))") for seed in range(6)]
    made = []
    for number, (network, unsafe) in enumerate(asked):
        property_ = read_vnnlib(question([(-1, 1), ("0.25", 1)], 4, unsafe), file="p")
        asked_of, effort = read_onnx(network), SearchEffort(most_steps=100)
        data = LinearSearch(asked_of, property_, effort, pairs=twin_pairs(asked_of)).run().data
        assert data is not None and data["pairs"]
        draft = Draft(network, first_class_loses(box, 4), Certificate("linear", data))
        made.append(statement_of(draft, margin=bool(number % 2), unsafe=unsafe))
    return made


def without_inputs() -> list[LabelStatement]:
    """Random networks on boxes that one coordinate empties, by much and by little."""
    made = []
    for seed in range(4):
        drawn = SmallReluNetwork.draw(np.random.default_rng(seed), sizes=(2, 3, 2))
        gap = Fraction(1, 2 ** (3 * seed + 1))
        box = Box((Fraction(0), gap / 2), (Fraction(1), -gap / 2))
        draft = Draft(
            drawn.instance().network_file, first_class_loses(box, 2), Certificate("no-inputs", {})
        )
        made.append(statement_of(draft, margin=bool(seed % 2)))
    return made


MADE: dict[str, Callable[[], list[LabelStatement]]] = {
    "linear": covered,
    "linear by intervals": enclosed,
    "linear in pairs": in_pairs,
    "no-inputs": without_inputs,
    "parity-lock": locked,
    "rewritten": rewritten,
}


# Sweeps --------------------------------------------------------------------------------------------


def operator(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """Another operator, axis or input where attention has its own."""
    model = onnx.load_from_string(base.network)
    changes = {
        "Softmax": lambda node: node.attribute[0].__setattr__("i", 1),
        "Div": lambda node: node.input.reverse(),
        "Relu": lambda node: setattr(node, "op_type", "Exp"),
        "Transpose": lambda node: node.attribute[0].ints.__setitem__(slice(0, 3), [0, 1, 2]),
        "ReduceSum": lambda node: node.input.__setitem__(0, model.graph.node[0].output[0]),
        "Concat": lambda node: node.input.reverse(),
        "MatMul": lambda node: node.input.reverse(),
    }
    chosen = [node for node in model.graph.node if node.op_type in changes]
    if not chosen:  # an earlier change took the last of them
        return base
    node = chosen[rng.integers(len(chosen))]
    changes[node.op_type](node)
    return replace(base, network=bytes(model.SerializeToString(deterministic=True)))


def twin_bias(base: LabelStatement, rng: Rng, all_: Sequence[LabelStatement]) -> LabelStatement:
    """Some bias raised as a twin raises that of its needle."""
    return sweeps.nudge(sweeps.bias(base, rng, all_), rng, all_)


PLAIN = (
    *(sweeps.ulp, sweeps.factor, sweeps.nudge, sweeps.bias, sweeps.bias, sweeps.swap_entries),
    *(sweeps.box, sweeps.one_face, sweeps.constraint, sweeps.constraint, twin_bias),
)
#: By kind: what is changed in networks that have more than ReLUs.
OTHER_MUTATORS: dict[str, tuple[sweeps.Mutator, ...]] = {
    "softmax-attention": (*PLAIN, operator),
    "linear-attention": (*PLAIN, operator),
    "nonexpansive": (*PLAIN, operator, sweeps.other_network),
    "fixed-routing": (*PLAIN, operator, sweeps.other_network),
    "convex-tangent": (*PLAIN, sweeps.data, sweeps.other_proof, sweeps.other_network),
    "pinning": (*PLAIN, sweeps.data, sweeps.other_proof, sweeps.other_network),
}
EXACT = (*TINY, *MADE, "witness")


def _decided() -> list[LabelStatement]:
    """The statements of all kinds whose networks the exact oracle knows."""
    return [base for kind in (*TINY, "witness") for base in base_statements(kind)]


def sweep_of(form: str) -> Sweep:
    """How a shipped kind, or one form of its proofs, is swept."""
    bases, kind = partial(base_statements, form), CERTIFICATES[form.split()[0]]
    if form in SEARCHED:
        return Sweep(kind, bases, SearchOracle(), OTHER_MUTATORS[form])
    return Sweep(kind, bases, ReluOracle(), others=_decided)


#: A kind that is missing here is not swept, and a test says so.
SWEEPS: dict[str, Sweep] = {form: sweep_of(form) for form in sorted((*EXACT, *SEARCHED))}
