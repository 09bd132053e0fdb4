"""Small instances under inspection."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dokimos.difficulty.inspection import Inspection
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.facts import ProfileSettings
from dokimos.suites.instance import LabelledInstance
from dokimos.suites.vnnlib.reader import read_vnnlib
from tests.checker.files import model, question


def observe(network: bytes, property_: bytes, **settings: Any) -> Inspection:
    return Inspection(
        read_onnx(network), read_vnnlib(property_, file="property"), ProfileSettings(**settings)
    )


def observe_labelled(labelled: LabelledInstance, **settings: Any) -> Inspection:
    return observe(labelled.instance.network_file, labelled.instance.property_file, **settings)


def dense(*layers: tuple[Any, Any], inner: str = "Relu") -> bytes:
    """Affine layers (weight [m, n], bias) with `inner` between them."""
    nodes: list[tuple[Any, ...]] = []
    weights: dict[str, Any] = {}
    tensor = "X"
    for number, (weight, bias) in enumerate(layers):
        weights[f"w{number}"], weights[f"b{number}"] = np.array(weight), np.array(bias)
        final = number == len(layers) - 1
        output = "Y" if final else f"z{number}"
        nodes.append(("Gemm", [tensor, f"w{number}", f"b{number}"], output, {"transB": 1}))
        if not final:
            nodes.append((inner, [output], f"a{number}"))
            tensor = f"a{number}"
    return model(nodes, weights, [1, len(layers[0][0][0])], [1, len(layers[-1][1])])


def unit_box(size: int, outputs: int, *unsafe: str, low: Any = -1, high: Any = 1) -> bytes:
    return question([(low, high)] * size, outputs, *unsafe)


def random_dense(rng: np.random.Generator, widths: Sequence[int], inner: str = "Relu") -> bytes:
    """Random weights, exact in float32."""
    layers = [
        (
            (rng.integers(-64, 65, size=(m, n)) / 32).astype(np.float32),
            (rng.integers(-64, 65, size=m) / 64).astype(np.float32),
        )
        for n, m in pairwise(widths)
    ]
    return dense(*layers, inner=inner)
