"""Steps that change how a dense network is written, and not what it computes over the reals.

Every step is exact: its result is computed in rationals and refused where float32 does not hold it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError
from dokimos.networks.chain import Chain, Layer, Weights
from dokimos.networks.writing.builder import NotFloat32, as_float32

Exact = NDArray[Any]
#: Enough for every float32 number spelt out in full.
MOST_DIGITS = 400


def _exact(values: Weights) -> Exact:
    return np.array([Fraction(float(v)) for v in values.flat], dtype=object).reshape(values.shape)


def _layer(weight: Exact, bias: Exact, *, rectified: bool) -> Layer:
    try:
        return Layer(as_float32(weight), as_float32(bias), rectified)
    except (NotFloat32, OverflowError) as error:
        raise InputError(f"a rewritten weight is not exact in float32: {error}") from None


def _number(text: str) -> Fraction:
    """A decimal or a fraction. Few bits suffice for float32; a long exponent would never end."""
    if len(text) > MOST_DIGITS or not set(text) <= set("+-./0123456789"):
        raise ValueError("not a short decimal or fraction")
    return Fraction(text)


@dataclass(frozen=True)
class Rewriting(ABC):
    """One change to the chain at layer number `layer` (from 0)."""

    name: ClassVar[str]
    layer: int

    @abstractmethod
    def apply(self, chain: Chain) -> Chain:
        """The chain after the step. Raises InputError where the step does not fit the chain."""

    def _hidden(self, chain: Chain) -> tuple[Layer, Layer]:
        """The layer and the one that reads it; it must be rectified."""
        if not 0 <= self.layer < len(chain.layers) - 1 or not chain.layers[self.layer].rectified:
            raise InputError(f"step {self.name!r}: there is no hidden layer {self.layer}")
        return chain.layers[self.layer], chain.layers[self.layer + 1]

    def _replaced(self, chain: Chain, count: int, *layers: Layer) -> Chain:
        """The chain with `count` layers from this one on replaced by `layers`."""
        at = self.layer
        return replace(chain, layers=(*chain.layers[:at], *layers, *chain.layers[at + count :]))


@dataclass(frozen=True)
class Permute(Rewriting):
    """Neuron i of the new layer is neuron order[i] of the old one; the next layer reads them so.

    A sum does not change with the order of its terms.
    """

    name: ClassVar[str] = "permute"
    order: tuple[int, ...]

    def apply(self, chain: Chain) -> Chain:
        """Permute the rows of this layer and the columns of the next."""
        here, after = self._hidden(chain)
        if sorted(self.order) != list(range(len(here.bias))):
            raise InputError("step 'permute': the order is not a permutation of the neurons")
        order = list(self.order)
        moved = Layer(here.weight[order], here.bias[order], True)
        return self._replaced(chain, 2, moved, replace(after, weight=after.weight[:, order]))


@dataclass(frozen=True)
class Rescale(Rewriting):
    """Neuron i is multiplied by 2^exponents[i], and what reads it divided by that.

    max(0, c·z) = c·max(0, z) for c > 0.
    """

    name: ClassVar[str] = "scale"
    exponents: tuple[int, ...]

    def apply(self, chain: Chain) -> Chain:
        """Scale the rows of this layer and the columns of the next."""
        here, after = self._hidden(chain)
        if len(self.exponents) != len(here.bias) or any(abs(e) > 100 for e in self.exponents):
            raise InputError("step 'scale': it needs one exponent of at most 100 for each neuron")
        factors = np.array([Fraction(2) ** e for e in self.exponents], dtype=object)
        scaled = _layer(_exact(here.weight) * factors[:, None], _exact(here.bias) * factors, rectified=True)
        reading = _layer(_exact(after.weight) / factors, _exact(after.bias), rectified=after.rectified)
        return self._replaced(chain, 2, scaled, reading)


@dataclass(frozen=True)
class Duplicate(Rewriting):
    """Neuron `neuron` is written twice; the first copy gets a share of 2^-halvings of what reads it.

    v·h = (v·s)·h + (v·(1 − s))·h.
    """

    name: ClassVar[str] = "duplicate"
    neuron: int
    halvings: int

    def apply(self, chain: Chain) -> Chain:
        """Append a copy of the row, and share the column that reads it."""
        here, after = self._hidden(chain)
        if not 0 <= self.neuron < len(here.bias) or not 1 <= self.halvings <= 20:
            raise InputError("step 'duplicate': there is no such neuron, or no such share")
        share = Fraction(1, 2**self.halvings)
        column = _exact(after.weight[:, self.neuron])
        weight = np.column_stack([_exact(after.weight), column * (1 - share)])
        weight[:, self.neuron] = column * share
        twice = Layer(
            np.vstack([here.weight, here.weight[self.neuron]]),
            np.append(here.bias, here.bias[self.neuron]),
            True,
        )
        return self._replaced(
            chain, 2, twice, _layer(weight, _exact(after.bias), rectified=after.rectified)
        )


@dataclass(frozen=True)
class SplitUnit(Rewriting):
    """Every preactivation z_i goes through two ReLUs first: z = max(0, z − t) − max(0, t − z) + t.

    With t inside the range of z both are unstable.
    """

    name: ClassVar[str] = "split"
    thresholds: tuple[str, ...]

    def apply(self, chain: Chain) -> Chain:
        """Put a layer of twice as many neurons before this one."""
        if not 0 <= self.layer < len(chain.layers):
            raise InputError(f"step 'split': there is no layer {self.layer}")
        here = chain.layers[self.layer]
        try:
            t = np.array([_number(text) for text in self.thresholds], dtype=object)
        except (ValueError, ZeroDivisionError, TypeError):
            raise InputError("step 'split': a threshold is not a number spelt as a string") from None
        if len(t) != len(here.bias):
            raise InputError("step 'split': it needs one threshold for each neuron")
        weight, bias, one = _exact(here.weight), _exact(here.bias), np.eye(len(t), dtype=np.int64)
        both = _layer(np.vstack([weight, -weight]), np.concatenate([bias - t, t - bias]), rectified=True)
        joined = _layer(np.hstack([one, -one]), t, rectified=here.rectified)
        return self._replaced(chain, 1, both, joined)


@dataclass(frozen=True)
class Identity(Rewriting):
    """A layer that copies the rectified values of this one: max(0, h) = h for h >= 0."""

    name: ClassVar[str] = "identity"

    def apply(self, chain: Chain) -> Chain:
        """Insert the copy after this layer."""
        here, _ = self._hidden(chain)
        size = len(here.bias)
        copy = Layer(np.eye(size, dtype=np.float32), np.zeros(size, dtype=np.float32), True)
        return self._replaced(chain, 1, here, copy)


@dataclass(frozen=True)
class Merge(Rewriting):
    """A layer without ReLU and the next become one: V·(W·x + b) + c = (V·W)·x + (V·b + c)."""

    name: ClassVar[str] = "merge"

    def apply(self, chain: Chain) -> Chain:
        """Multiply the two affine maps out, exactly."""
        if not 0 <= self.layer < len(chain.layers) - 1 or chain.layers[self.layer].rectified:
            raise InputError(f"step 'merge': layer {self.layer} is rectified, or the last")
        here, after = chain.layers[self.layer], chain.layers[self.layer + 1]
        v, w = _exact(after.weight), _exact(here.weight)
        bias = v.dot(_exact(here.bias)) + _exact(after.bias)
        return self._replaced(chain, 2, _layer(v.dot(w), bias, rectified=after.rectified))


STEPS: Mapping[str, type[Rewriting]] = {
    step.name: step for step in (Permute, Rescale, Duplicate, SplitUnit, Identity, Merge)
}


def step_to_json(step: Rewriting) -> dict[str, Any]:
    """A step as plain JSON."""
    values = {f.name: getattr(step, f.name) for f in fields(step)}
    return {"step": step.name} | {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def step_from_json(document: Any) -> Rewriting:
    """A step from plain JSON. Raises InputError where it is none."""
    if not isinstance(document, dict) or document.get("step") not in STEPS:
        raise InputError(f"a step must be an object whose 'step' is one of {', '.join(STEPS)}")
    kind = STEPS[document["step"]]
    expected = {f.name: str(f.type) for f in fields(kind)}
    if set(document) != {"step", *expected}:
        raise InputError(f"a step {kind.name!r} must hold exactly: {', '.join(expected)}")
    values = {name: _value(document[name], of, f"{kind.name}.{name}") for name, of in expected.items()}
    return kind(**values)


def _value(value: Any, of: str, what: str) -> Any:
    inner = {"int": int, "tuple[int, ...]": int, "tuple[str, ...]": str}[of]
    items = value if of.startswith("tuple") and isinstance(value, list) else [value]
    if of.startswith("tuple") != isinstance(value, list) or any(type(item) is not inner for item in items):
        raise InputError(f"{what} has the wrong type")
    return tuple(items) if of.startswith("tuple") else value
