"""What enclosing an MLP 784-256x4-10 costs, as ratios to one forward pass measured in the same run."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from time import perf_counter

import numpy as np

from dokimos.networks.graph import Network, Node
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.rounding import rounding_bounds

WIDTHS = (784, 256, 256, 256, 256, 10)
REPEATS = 30


def mlp(rng: np.random.Generator) -> Network:
    nodes, constants, tensor = [], {}, "x"
    shapes = {"x": (1, WIDTHS[0])}
    for layer, (inputs, outputs) in enumerate(pairwise(WIDTHS)):
        constants[f"w{layer}"] = (rng.standard_normal((inputs, outputs)) / inputs**0.5).astype(np.float32)
        constants[f"b{layer}"] = rng.standard_normal(outputs).astype(np.float32)
        attributes = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}
        nodes.append(Node("Gemm", (tensor, f"w{layer}", f"b{layer}"), f"z{layer}", attributes))
        shapes[f"z{layer}"] = (1, outputs)
        tensor = f"z{layer}"
        if outputs != WIDTHS[-1]:
            nodes.append(Node("Relu", (tensor,), f"a{layer}"))
            shapes[f"a{layer}"] = (1, outputs)
            tensor = f"a{layer}"
    return Network("x", tensor, tuple(nodes), constants, shapes)


def forward(network: Network, weights: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """One plain float64 pass."""
    values = {"x": x, **weights}
    for node in network.nodes:
        arguments = [values[name] for name in node.inputs]
        values[node.output] = (
            arguments[0] @ arguments[1] + arguments[2]
            if node.op == "Gemm"
            else np.maximum(arguments[0], 0.0)
        )
    return values[network.output]


def median_seconds(action: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    rng = np.random.default_rng(0)
    network = mlp(rng)
    weights = {name: array.astype(np.float64) for name, array in network.constants.items()}
    x = rng.random((1, WIDTHS[0]))
    lower = [Fraction(v - 0.01) for v in x.ravel().tolist()]
    upper = [Fraction(v + 0.01) for v in x.ravel().tolist()]
    plain = median_seconds(lambda: forward(network, weights, x))
    interval = median_seconds(lambda: enclose(network, lower, upper))
    rounding = median_seconds(lambda: rounding_bounds(network, lower, upper))
    ratios = f"enclosure {interval / plain:.0f}x, with rounding bounds {rounding / plain:.0f}x"
    print(f"one float64 forward pass {plain * 1e3:.2f} ms; {ratios}")


if __name__ == "__main__":
    main()
