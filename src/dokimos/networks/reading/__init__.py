"""From ONNX files to the immutable graph of core operators."""
