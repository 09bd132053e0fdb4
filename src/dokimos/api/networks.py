"""`read_network` and `read_property`: for evaluation in exact arithmetic."""

from __future__ import annotations

from pathlib import Path

from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.reading.path import read_onnx_file
from dokimos.networks.semantics.exact import evaluate as evaluate
from dokimos.properties.model import Property
from dokimos.properties.path import read_vnnlib_file
from dokimos.properties.reading import read_vnnlib


def read_network(network: str | Path | bytes) -> Network:
    """Read a network from an ONNX file (plain or gzipped), or from the bytes of one.

    >>> network = dokimos.read_network(dokimos.read_suite("tiny").entries[0].network_path)
    >>> network.input_size, network.output_size
    (20, 3)
    """
    return read_onnx(network) if isinstance(network, bytes) else read_onnx_file(Path(network))


def read_property(property: str | Path | bytes) -> Property:
    """Read a property from a VNN-LIB file (plain or gzipped), or from the bytes of one.

    >>> asked = dokimos.read_property(dokimos.read_suite("tiny").entries[0].property_path)
    >>> len(asked.cases[0].box.lower)
    20
    """
    if isinstance(property, bytes):
        return read_vnnlib(property, file="the property")
    return read_vnnlib_file(Path(property))
