"""Networks that nobody here made: onnxruntime stays within the enclosure widened by the rounding bound."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from dokimos.networks.semantics.rounding import rounding_bounds
from tests.networks.sampling import exactly, float32_network, points_of
from tests.shared import SHARED

MODELS = {
    "acasxu": ("2026/acasxu_2023/2.0/onnx/ACASXU_run2a_2_3_batch_2000.onnx.gz", -0.3, 0.01),
    "oval21": ("2021/oval21/nets/cifar_base_kw.onnx", 0.0, 0.01),
    "resnet_2b": ("2021/cifar10_resnet/onnx/resnet_2b.onnx", 0.4, 0.008),
    "mnistfc": ("2021/mnistfc/mnist-net_256x4.onnx", 0.5, 0.03),
    "mnistfc, everything": ("2021/mnistfc/mnist-net_256x2.onnx", 0.5, 0.5),
}


def _content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@pytest.mark.parametrize("name", list(MODELS))
def test_onnxruntime_is_within_the_widened_enclosure(name: str) -> None:
    where, centre, radius = MODELS[name]
    if not (SHARED / where).exists():
        pytest.skip("the real models are not here")
    content = _content(SHARED / where)
    net = read_onnx(content)
    run = float32_network(content, net)
    rng = np.random.default_rng(0)
    middle = (centre + rng.uniform(-0.3, 0.3, net.input_size)).astype(np.float32)
    lower, upper = middle - np.float32(radius), middle + np.float32(radius)
    bound = rounding_bounds(net, exactly(lower), exactly(upper))[net.output]
    assert np.isfinite(bound.error).all()
    for point in points_of(rng, lower, upper, 6):
        computed = run(point)
        assert (bound.lower - bound.error <= computed).all() and (
            computed <= bound.upper + bound.error
        ).all()
        here = enclose(net, exactly(point), exactly(point))[net.output]
        assert (np.maximum(here.lower - computed, computed - here.upper) <= bound.error).all()
        assert (here.upper - here.lower <= 1e-8 * np.maximum(1.0, np.abs(here.lower))).all()
