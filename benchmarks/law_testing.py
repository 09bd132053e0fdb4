"""How long testing a law takes, as ratios measured side by side in one run.

    python benchmarks/law_testing.py [LAW]

On the COMPAS network and one law (felony_inc unless given); start-up, and looking for the smallest change
of each violation afterwards, apart:

1. 5,000 tests, beside the bare batched prediction of the same rows; at most 3 times it, or 20 ms above it.
2. 100,000 tests, beside a loop of one call of onnxruntime for each prediction; at least 20 times faster.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from dokimos.laws.domain.lookup import load_domain, shipped_laws
from dokimos.laws.engine.law_test import test_law
from dokimos.laws.engine.results import LawSettings
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.lookup import load_model

_REPEATS = 20
_FEW, _MANY = 5_000, 100_000


def best_seconds(action: Callable[[], object], repeats: int = _REPEATS) -> float:
    """The least processor time of a few runs, after one that warms up; all run on one thread."""
    action()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def main(arguments: list[str]) -> None:
    compas = load_domain("compas")
    assert compas.model is not None and compas.inputs is not None
    path = compas.model()
    law = read_law(
        Path(arguments[0])
        if arguments
        else next(p for p in shipped_laws("compas") if "felony_inc" in p.name)
    )
    model = load_model(path, compas)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    data = np.asarray(compas.inputs(), dtype=np.float32)
    rng = np.random.default_rng(0)

    def tests(budget: int) -> Callable[[], object]:
        settings = LawSettings(budget=budget, seed=1, exhaustive=False, keep=1, shrink=False)
        return lambda: test_law(law, model=model, domain=compas, settings=settings)

    few = data[rng.integers(0, len(data), 2 * _FEW)]
    bare = best_seconds(lambda: model.predict(few))
    tested = best_seconds(tests(_FEW))
    print(f"{_FEW:,} tests: {1e3 * tested:.1f} ms; the bare batched prediction: {1e3 * bare:.1f} ms")
    fine = tested <= 3 * bare or tested <= bare + 0.020
    verdict = "fine" if fine else "TOO SLOW"
    print(f"  {tested / bare:.1f} times it, {1e3 * (tested - bare):.1f} ms above it: {verdict}")

    many = data[rng.integers(0, len(data), 2 * _MANY)]
    name = session.get_inputs()[0].name

    def loop() -> None:
        for row in range(len(many)):
            session.run(None, {name: many[row : row + 1]})[0].argmax()

    looped = best_seconds(loop, 1)
    tested = best_seconds(tests(_MANY), 3)
    print(f"{_MANY:,} tests: {tested:.3f} s; a loop of one call for each prediction: {looped:.2f} s")
    print(f"  {looped / tested:.1f} times faster: {'fine' if looped >= 20 * tested else 'TOO SLOW'}")


if __name__ == "__main__":
    main(sys.argv[1:])
