"""What others compute: onnxruntime and ONNX's reference, replays, and the cross-check."""
