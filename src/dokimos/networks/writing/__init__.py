"""From layers to ONNX files."""
