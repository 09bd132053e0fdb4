"""How the time of reading grows with the size of the file, and how long a property of 8.9 MB takes.

    python benchmarks/reading_speed.py

For each shape of file, sizes are doubled; the exponent is the slope of log time over log size (1: the time
is proportional to the size). Properties of 8.9 MB are read at the end, against merely splitting their text
into tokens by one regular expression. Times are CPU seconds, the least of three runs.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import onnx
from onnx import TensorProto, helper
from vnnlib_loading import flat_text

from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.vnnlib.reader import parse_vnnlib

TOKENS = re.compile(r"[()]|[^\s()]+")
MEGABYTES = 8.9
REPEATS = 3
DOUBLINGS = 4


def cpu_seconds(action: Callable[[], object]) -> float:
    """The least of a few runs."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def relus(nodes: int) -> bytes:
    """A chain of ReLUs."""
    chain = [helper.make_node("Relu", [f"t{i}"], [f"t{i + 1}"]) for i in range(nodes)]
    ends = [helper.make_tensor_value_info(f"t{i}", TensorProto.FLOAT, [1, 4]) for i in (0, nodes)]
    graph = helper.make_graph(chain, "relus", ends[:1], ends[1:])
    opset = [helper.make_opsetid("", 17)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opset, ir_version=8)
    return bytes(model.SerializeToString())


def nested(word: str, depth: int, *, left: bool) -> str:
    """`and` or `or` of two operands, of which one is such a formula again."""
    declared = "(declare-const X_0 Real)(declare-const Y_0 Real)(assert (<= X_0 1))(assert (>= X_0 0))"
    if left:
        formula = f"({word} " * depth + "(<= Y_0 0)" + "".join(f" (<= Y_0 {k}))" for k in range(depth))
    else:
        formula = "".join(f"({word} (<= Y_0 {k}) " for k in range(depth)) + "(<= Y_0 0)" + ")" * depth
    return f"{declared}(assert {formula})"


def boxes(count: int, inputs: int) -> str:
    """A disjunction of boxes, each with a bound on the output."""
    numbers = random.Random(0)
    lines = [f"(declare-const X_{i} Real)" for i in range(inputs)] + [
        "(declare-const Y_0 Real)",
        "(assert (or",
    ]
    for _ in range(count):
        middles = [numbers.uniform(-2, 2) for _ in range(inputs)]
        bounds = " ".join(f"(>= X_{i} {m:.8f}) (<= X_{i} {m + 0.01:.8f})" for i, m in enumerate(middles))
        lines.append(f"  (and {bounds} (<= Y_0 {numbers.random():.6f}))")
    return "\n".join([*lines, "))"])


def halfspaces(count: int) -> str:
    """A disjunction of conjunctions of linear constraints on the outputs."""
    numbers = random.Random(0)
    lines = ["(declare-const X_0 Real)", *(f"(declare-const Y_{j} Real)" for j in range(100))]
    lines += ["(assert (<= X_0 1.0))", "(assert (>= X_0 0.0))", "(assert (or"]
    for _ in range(count):
        a, b, c, d = (numbers.randrange(100) for _ in range(4))
        weighted = f"(+ (* {numbers.random():.6f} Y_{c}) (* -1.5 Y_{d}))"
        lines.append(f"  (and (>= Y_{a} Y_{b}) (<= {weighted} {numbers.random():.6f}))")
    return "\n".join([*lines, "))"])


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """The slope of log time over log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def reading(text: Callable[[int], str]) -> Callable[[int], Callable[[], object]]:
    """How to read a property of a given size."""
    return lambda size: partial(parse_vnnlib, text(size))


GROWING: dict[str, tuple[int, Callable[[int], Callable[[], object]]]] = {
    "ONNX, a chain of ReLUs": (2500, lambda size: partial(read_onnx, relus(size))),
    **{
        f"VNN-LIB, `{word}` nested {'left' if left else 'right'}": (
            4000,
            reading(partial(nested, word, left=left)),
        )
        for word in ("and", "or")
        for left in (True, False)
    },
    "VNN-LIB, boxes": (2000, reading(lambda size: boxes(size, 5))),
    "VNN-LIB, flat bounds": (5000, reading(flat_text)),
    "VNN-LIB, half-spaces": (2000, reading(halfspaces)),
}
LARGE: dict[str, Callable[[], str]] = {
    "flat bounds of 79,700 inputs": lambda: flat_text(79_700),
    "38,600 boxes of 5 inputs": lambda: boxes(38_600, 5),
    "252 boxes of 784 inputs": lambda: boxes(252, 784),
}


def main() -> None:
    for name, (start, prepare) in GROWING.items():
        sizes = [start * 2**k for k in range(DOUBLINGS)]
        seconds = [cpu_seconds(prepare(size)) for size in sizes]
        print(f"{name:<32} {sizes[-1]:>6}: {seconds[-1]:6.2f} s, exponent {exponent(sizes, seconds):.2f}")
    for name, make in LARGE.items():
        text = make()
        parsing = cpu_seconds(partial(parse_vnnlib, text))
        splitting = cpu_seconds(partial(TOKENS.findall, text))
        size, ratio = len(text) / 1e6, parsing / splitting
        print(f"{name:<32} {size:4.1f} MB: {parsing:6.2f} s, {ratio:.1f} times splitting it")


if __name__ == "__main__":
    main()
