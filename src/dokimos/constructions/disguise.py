"""Disguises: a chain of dense layers written differently, so that a tool cannot recognise the family."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from types import MappingProxyType

import numpy as np

from dokimos.constructions.draft import Draft
from dokimos.core import strict_json
from dokimos.core.errors import ConstructionFailed, InputError
from dokimos.core.registry import unknown_name
from dokimos.networks.chain import (
    Chain,
    Duplicate,
    Identity,
    Merge,
    Permute,
    Rescale,
    Rewriting,
    SplitUnit,
    as_chain,
)
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import write_chain
from dokimos.suites.instance import Certificate, Label

#: Neurons are scaled by 2^-LARGEST_EXPONENT up to 2^LARGEST_EXPONENT.
LARGEST_EXPONENT = 3


def _hidden(chain: Chain) -> list[int]:
    return [k for k, layer in enumerate(chain.layers[:-1]) if layer.rectified]


def _permutations(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    sizes = {k: len(chain.layers[k].bias) for k in _hidden(chain)}
    return [Permute(k, tuple(int(i) for i in rng.permutation(size))) for k, size in sizes.items()]


def _scalings(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    span = LARGEST_EXPONENT
    sizes = {k: len(chain.layers[k].bias) for k in _hidden(chain)}
    return [
        Rescale(k, tuple(int(e) for e in rng.integers(-span, span + 1, size=size)))
        for k, size in sizes.items()
    ]


def _duplications(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    return [
        Duplicate(k, int(rng.integers(len(chain.layers[k].bias))), int(rng.integers(1, 3)))
        for k in _hidden(chain)
    ]


def _splits(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    size = len(chain.layers[0].bias)
    return [SplitUnit(0, tuple(Fraction(int(t), 64) for t in rng.integers(-4, 5, size=size)))]


def _identities(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    return [Identity(int(rng.choice(_hidden(chain))))]


def _mergers(chain: Chain, rng: np.random.Generator) -> list[Rewriting]:
    """From the last layer to the first, so that the numbers of earlier layers do not change."""
    plain = [k for k, layer in enumerate(chain.layers[:-1]) if not layer.rectified]
    if not plain:
        raise InputError("it has no two adjacent affine layers (without a ReLU between them) to merge")
    return [Merge(k) for k in reversed(plain)]


#: The kinds of disguise, and the steps that each draws for a chain.
DISGUISES: Mapping[str, Callable[[Chain, np.random.Generator], list[Rewriting]]] = MappingProxyType(
    {
        "permute": _permutations,
        "scale": _scalings,
        "duplicate": _duplications,
        "split": _splits,
        "identity": _identities,
        "merge": _mergers,
    }
)


def disguise_drafts(
    drafts: Sequence[Draft], kinds: Sequence[str], rng: np.random.Generator
) -> tuple[Draft, ...]:
    """The drafts, all rewritten by the same steps (drawn for the first), so that they still look alike.

    Raises InputError for an unknown kind, ConstructionFailed if the networks cannot be rewritten.
    """
    for kind in kinds:
        if kind not in DISGUISES:
            raise unknown_name("disguise", kind, sorted(DISGUISES))
    if not kinds:
        return tuple(drafts)
    try:
        chain = as_chain(read_onnx(drafts[0].network))
        steps: list[Rewriting] = []
        for kind in kinds:
            for step in DISGUISES[kind](chain, rng):
                chain = step.apply(chain)
                steps.append(step)
        return tuple(_rewritten(draft, steps) for draft in drafts)
    except InputError as error:
        raise ConstructionFailed(
            f"The instance cannot be disguised by {', '.join(kinds)}: {error}. Leave out that step; "
            "disguises are for chains of dense layers, as docs/families.md says."
        ) from None


def _rewritten(draft: Draft, steps: Sequence[Rewriting]) -> Draft:
    chain = as_chain(read_onnx(draft.network))
    for step in steps:
        chain = step.apply(chain)
    network = write_chain(chain)
    if draft.label is Label.SAT:
        return replace(draft, network=network)
    data = {
        "base": base64.b64encode(draft.network).decode("ascii"),
        "steps": strict_json.parse(strict_json.write(steps), file="steps"),
        "kind": draft.certificate.kind,
        "data": dict(draft.certificate.data),
    }
    return replace(draft, network=network, certificate=Certificate("rewritten", data))
