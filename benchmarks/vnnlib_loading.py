"""How long loading a property takes, against merely splitting the same text into tokens by one regex.

python benchmarks/vnnlib_loading.py [INPUTS]
"""

import random
import re
import sys
import time
from collections.abc import Callable
from functools import partial

from dokimos.suites.vnnlib.reader import parse_vnnlib

TOKENS = re.compile(r"[()]|[^\s()]+")


def flat_text(inputs: int, outputs: int = 10) -> str:
    numbers = random.Random(0)
    lines = [f"(declare-const X_{i} Real)" for i in range(inputs)]
    lines += [f"(declare-const Y_{j} Real)" for j in range(outputs)]
    for i in range(inputs):
        middle = numbers.uniform(-2, 2)
        lines += [f"(assert (<= X_{i} {middle + 0.01:.16f}))", f"(assert (>= X_{i} {middle - 0.01:.16f}))"]
    lines += ["(assert (or", *(f"    (and (>= Y_{j} Y_0))" for j in range(1, outputs)), "))"]
    return "\n".join(lines)


def tensor_text(inputs: int) -> str:
    flat = flat_text(inputs).splitlines()
    body = "\n".join(line for line in flat if not line.startswith("(declare"))
    body = re.sub(r"([XY])_(\d+)", r"\1[0,\2]", body)
    header = "(vnnlib-version <2.0>)\n(declare-network f"
    return f"{header} (declare-input X real [1,{inputs}]) (declare-output Y real [1,10]))\n{body}"


def fastest(action: Callable[[], object], repeats: int = 15) -> float:
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main() -> None:
    inputs = int(sys.argv[1]) if len(sys.argv) > 1 else 3072
    for version, text in (("1.0", flat_text(inputs)), ("2.0", tensor_text(inputs))):
        loading = fastest(partial(parse_vnnlib, text))
        splitting = fastest(partial(TOKENS.findall, text))
        print(
            f"VNN-LIB {version}, {inputs} inputs: load {loading * 1e3:.1f} ms, "
            f"split {splitting * 1e3:.1f} ms, ratio {loading / splitting:.1f}"
        )


if __name__ == "__main__":
    main()
