"""Reading a network from a file on disk."""

from __future__ import annotations

from pathlib import Path

from dokimos.core.errors import UnreadableFile
from dokimos.core.gzipped import uncompressed
from dokimos.core.regular_files import read_regular
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx


def read_onnx_file(path: Path) -> Network:
    """The network in the file at `path`, decompressed first if it is compressed.

    Raises UnreadableFile or UnsupportedOp, whose message starts with the path.
    """
    try:
        content = read_regular(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnreadableFile(path, f"cannot be read ({reason}).") from error
    return read_onnx(uncompressed(content, file=str(path)), name=str(path))
