"""What a network is: a small immutable graph read from ONNX, and one operator table per semantics."""
