"""How long testing a law takes, as ratios measured side by side in one run.

    python benchmarks/law_testing.py [LAW]

On the COMPAS network and one law (felony_inc unless given); start-up, and looking for smaller changes of
each violation afterwards, apart:

1. 5,000 tests, beside the bare batched prediction of the same rows; at most 3 times it, or 20 ms above it.
2. 100,000 tests, beside a loop of one call of onnxruntime for each prediction; at least 20 times faster.
3. 1,000,000 tests, beside the bare batched prediction; at most 3 times it plus 20 ms, in less than 1 GB.
4. 5,000 tests of a block with 21 predictions by a model that takes 0.05 s a call, beside the 21 bare
   batches (elapsed time); at most 3 times them plus 50 ms.

And on a made-up data set of 100,000 rows with 200 features, and a network of 32 units:

5. 100,000 tests, beside a loop over batches that is written by hand for that law; at most twice its time.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from dokimos.laws import integer, real
from dokimos.laws.domain.definition import Domain, load_domain, read_domain, shipped_laws
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law
from dokimos.laws.language.parser import parse_law, read_law
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import as_domain_model, load_model
from dokimos.laws.models.model_files import onnx_model
from dokimos.laws.models.tested_model import Model

_REPEATS = 20
_FEW, _MANY, _MILLION = 5_000, 100_000, 1_000_000
_ROWS, _FEATURES, _UNITS, _BATCH = 100_000, 200, 32, 8192
_MOST_BYTES = 10**9
_DELAY = 0.05
_BLOCK_LAW = """
input x1;
output d1;
output d2;
{
    d1 = predict(x1)
    d2 = max(predict(x1) for _ in range(20))
}
ensures d1 <= d2;
"""
_WIDE_LAW = """
input x1;
var v := x1.count + randInt(1, 10);
var x2 := x1[count := v];
output d1;
output d2;
{
    d1 = predict(x1)
    d2 = predict(x2)
}
ensures d1 <= d2;
"""


def best_seconds(action: Callable[[], object], repeats: int = _REPEATS) -> float:
    """The least processor time of a few runs, after one that warms up; all run on one thread."""
    action()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def tests(law: Law, model: Model, domain: Domain, budget: int) -> Callable[[], object]:
    """A test of a law with so many tests."""
    settings = LawSettings(budget=budget, seed=1, exhaustive=False, keep=1, shrink=False)
    return lambda: test_law(law, model=model, domain=domain, settings=settings)


def session_of(content: bytes) -> onnxruntime.InferenceSession:
    """The network as onnxruntime runs it on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def main(arguments: list[str]) -> None:
    compas = load_domain("compas")
    assert compas.model is not None and compas.inputs is not None
    path = compas.model()
    named = next(each for each in shipped_laws("compas") if "felony_inc" in each.name)
    law = read_law(Path(arguments[0]) if arguments else named)
    model = load_model(path, compas)
    data = np.asarray(compas.inputs(), dtype=np.float32)
    rng = np.random.default_rng(0)

    few = data[rng.integers(0, len(data), 2 * _FEW)]
    bare = best_seconds(lambda: model.predict(few))
    tested = best_seconds(tests(law, model, compas, _FEW))
    print(f"{_FEW:,} tests: {1e3 * tested:.1f} ms; the bare batched prediction: {1e3 * bare:.1f} ms")
    fine = tested <= 3 * bare or tested <= bare + 0.020
    verdict = "fine" if fine else "TOO SLOW"
    print(f"  {tested / bare:.1f} times it, {1e3 * (tested - bare):.1f} ms above it: {verdict}")

    many = data[rng.integers(0, len(data), 2 * _MANY)]
    session = session_of(path.read_bytes())
    name = session.get_inputs()[0].name

    def loop() -> None:
        for row in range(len(many)):
            session.run(None, {name: many[row : row + 1]})[0].argmax()

    looped = best_seconds(loop, 1)
    tested = best_seconds(tests(law, model, compas, _MANY), 3)
    print(f"{_MANY:,} tests: {tested:.3f} s; a loop of one call for each prediction: {looped:.2f} s")
    print(f"  {looped / tested:.1f} times faster: {'fine' if looped >= 20 * tested else 'TOO SLOW'}")

    most = data[rng.integers(0, len(data), 2 * _MILLION)]
    bare = best_seconds(lambda: model.predict(most), 3)
    tested = best_seconds(tests(law, model, compas, _MILLION), 3)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    fine = tested <= 3 * bare + 0.020 and peak < _MOST_BYTES
    print(f"{_MILLION:,} tests: {tested:.2f} s; the bare batched prediction: {bare:.2f} s")
    verdict = "fine" if fine else "TOO SLOW OR LARGE"
    print(f"  {tested / bare:.1f} times it, at most {peak / 1e6:.0f} MB in the whole run: {verdict}")
    slow(model, compas)
    wide()


def slow(model: Model, domain: Domain) -> None:
    """Tests of a block with 21 predictions by a model that takes long for a call."""
    data = np.asarray(domain.inputs() if domain.inputs else ())[:_FEW]

    def late(records: NDArray[np.float64]) -> NDArray[np.int64]:
        time.sleep(_DELAY)
        return model.predict(records)

    late.batched = True  # type: ignore[attr-defined]
    seconds = []
    made = as_domain_model(late, domain)
    for action in (
        lambda: [made.predict(data) for _ in range(21)],
        tests(parse_law(_BLOCK_LAW), made, domain, _FEW),
    ):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    bare, tested = seconds
    verdict = "fine" if tested <= 3 * bare + 0.050 else "TOO SLOW"
    print(f"{_FEW:,} tests of a block with 21 predictions: {tested:.2f} s; 21 bare batches: {bare:.2f} s")
    print(f"  {tested / bare:.1f} times it: {verdict}")


def wide() -> None:
    """100,000 tests on records of 200 features."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(_ROWS, _FEATURES))
    data[:, 0] = rng.integers(0, 20, _ROWS)
    content = network(rng)
    others = [real(f"column_{index}") for index in range(1, _FEATURES)]
    parts = SimpleNamespace(FEATURES=[integer("count", 0, 30), *others], inputs=lambda: data)
    domain = read_domain(parts, name="wide")
    model = onnx_model(content, domain, name="wide.onnx")
    session = session_of(content)

    def by_hand() -> None:
        draws = np.random.default_rng(1)
        violated = 0
        for _ in range(0, _MANY, _BATCH):
            before = data[draws.integers(0, _ROWS, _BATCH)]
            after = before.copy()
            after[:, 0] += draws.integers(1, 10, _BATCH, endpoint=True)
            first, second = (
                session.run(None, {"x": rows.astype(np.float32)})[0].argmax(axis=1)
                for rows in (before, after)
            )
            violated += int(np.count_nonzero(first > second))

    hand = best_seconds(by_hand, 5)
    tested = best_seconds(tests(parse_law(_WIDE_LAW), model, domain, _MANY), 5)
    verdict = "fine" if tested <= 2 * hand else "TOO SLOW"
    print(f"{_MANY:,} tests on {_FEATURES} features: {tested:.2f} s; a loop written by hand: {hand:.2f} s")
    print(f"  {tested / hand:.1f} times it: {verdict}")


def network(rng: np.random.Generator) -> bytes:
    """A network of one hidden layer and two outputs, with drawn weights, as an ONNX file."""

    def weights(name: str, *shape: int) -> TensorProto:
        made: NDArray[np.float32] = (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)
        return numpy_helper.from_array(made, name)

    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
        helper.make_node("Relu", ["h"], ["a"]),
        helper.make_node("Gemm", ["a", "w2", "b2"], ["y"]),
    ]
    shapes = {"w1": (_FEATURES, _UNITS), "b1": (_UNITS,), "w2": (_UNITS, 2), "b2": (2,)}
    graph = helper.make_graph(
        nodes,
        "wide",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", _FEATURES])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 2])],
        [weights(name, *shape) for name, shape in shapes.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = made.SerializeToString()
    return content


if __name__ == "__main__":
    main(sys.argv[1:])
