"""How long exact evaluation takes, as ratios measured side by side in one run.

    python benchmarks/exact_evaluation.py MODEL.onnx [MODEL.onnx.gz ...]

For each model: one exact evaluation at the point 1/2, one call of onnxruntime, and their ratio; then the
ratio of each model's exact evaluation to the first one's.
"""

from __future__ import annotations

import gzip
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnxruntime

from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import evaluate

_REPEATS = 5


def best_seconds(action: Callable[[], object]) -> float:
    """The shortest of a few runs, after one that warms up."""
    action()
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(path: Path) -> tuple[float, float]:
    """Seconds of one exact evaluation, and of one call of onnxruntime on one thread."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    network = read_onnx(content, name=str(path))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    dtype = np.float64 if "double" in session.get_inputs()[0].type else np.float32
    feed = {network.input: np.full(network.input_shape, 0.5, dtype=dtype)}
    point = [Fraction(1, 2)] * network.input_size
    return best_seconds(lambda: evaluate(network, point)), best_seconds(lambda: session.run(None, feed))


def main(paths: list[str]) -> None:
    measured = [(Path(path).name, *measure(Path(path))) for path in paths]
    print(f"{'model':<44} {'exact ms':>9} {'runtime ms':>10} {'ratio':>8} {'to first':>8}")
    for name, exact, runtime in measured:
        ratios = f"{exact / runtime:8.0f} {exact / measured[0][1]:8.2f}"
        print(f"{name:<44} {1e3 * exact:9.2f} {1e3 * runtime:10.3f} {ratios}")


if __name__ == "__main__":
    main(sys.argv[1:])
