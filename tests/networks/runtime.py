"""What onnxruntime computes, for comparison."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime

from tests.networks.building import Array


def run(model: onnx.ModelProto | bytes, x: Array) -> Array:
    """The output of the model at `x`, with nothing optimised away."""
    content = model if isinstance(model, bytes) else model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    weights = {tensor.name for tensor in onnx.load_from_string(content).graph.initializer}
    name = next(entry.name for entry in session.get_inputs() if entry.name not in weights)
    return np.asarray(session.run(None, {name: x})[0])
