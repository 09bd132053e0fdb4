"""What NeuralSAT, without our adapter, makes of an average pool with padding:

    $DOKIMOS_HOME/verifiers/neuralsat-*/bin/python studies/alone/neuralsat.py

Run by NeuralSAT's own interpreter, on a pool of 3 × 3 with a padding of 1 and an image of ones. The
padding does not count (`count_include_pad` is 0), so every output is 1. Prints the least output: of
onnxruntime, of the network that NeuralSAT converts, and of the network that it bounds.
"""

from __future__ import annotations

import importlib.metadata
import io
import sys
import warnings
from types import ModuleType


def pool() -> bytes:
    """The network as the content of an ONNX file."""
    from onnx import TensorProto, helper

    nodes = [
        helper.make_node(
            "AveragePool",
            ["x"],
            ["pooled"],
            kernel_shape=[3, 3],
            strides=[2, 2],
            pads=[1, 1, 1, 1],
            count_include_pad=0,
        ),
        helper.make_node("Flatten", ["pooled"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 5, 5]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 9]),
    ]
    graph = helper.make_graph(nodes, "pool", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


def main() -> None:
    """Print the least output in three ways."""
    warnings.simplefilter("ignore")
    sys.modules["torchvision"] = ModuleType("torchvision")  # imported and not used
    sys.path.insert(0, str(importlib.metadata.distribution("neuralsat").locate_file("src")))
    import numpy as np
    import onnxruntime
    import torch
    from abstractor.auto_LiRPA import BoundedModule
    from helper.network.read_onnx import _parse_onnx

    network, ones = pool(), np.ones((1, 1, 5, 5), np.float32)
    session = onnxruntime.InferenceSession(network, providers=["CPUExecutionProvider"])
    print(f"onnxruntime: {session.run(None, {'x': ones})[0].min():.3f}")
    converted = _parse_onnx(io.BytesIO(network))[0]
    print(f"as converted: {converted(torch.tensor(ones)).min().item():.3f}")
    bounded = BoundedModule(converted, torch.tensor(ones), verbose=False)
    print(f"as bounded: {bounded(torch.tensor(ones)).min().item():.3f}")


if __name__ == "__main__":
    main()
