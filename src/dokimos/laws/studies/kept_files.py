"""Files that take long to make, made once and cached in the home folder of Dokimos."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from dokimos.core.files import home, write_whole


def kept_file(place: str, make: Callable[[], bytes]) -> Path:
    """The file at a path in the home folder; `make` provides its content if it is not there yet."""
    path = home() / place
    if not path.is_file():
        write_whole(path, make())
    return path


def kept_model(name: str, key: str, train: Callable[[int], bytes], seed: int) -> Path:
    """The ONNX file of a network trained with a seed; `train` makes it if it is not there yet."""
    trained = f"-seed-{seed}" if seed else ""
    return kept_file(f"models/{name}{trained}-{key}.onnx", lambda: train(seed))


def key_of(made_from: bytes) -> str:
    """A key for the name of a file: files made from different things get different keys."""
    return hashlib.sha256(made_from).hexdigest()[:16]
