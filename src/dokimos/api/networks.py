"""`read_network`, `read_property`, and `evaluate` in exact arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from dokimos.judging.written_points import exact_point
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.reading.path import read_onnx_file
from dokimos.networks.semantics import exact
from dokimos.networks.semantics.exact import Enclosure
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


def evaluate(
    network: str | Path | bytes | Network,
    point: Sequence[float | Fraction],
    *,
    relative_width: Fraction = Fraction(1, 2**40),
    max_bits: int = 4096,
) -> Enclosure:
    """Evaluate a network, or the one in a file, at a point (row-major), as a function of real numbers.

    Exact if all operators stay within the rationals; otherwise enclosed with `upper - lower <=
    relative_width * max(1, |value|)` at every output. Raises Undecided if `max_bits` of precision do not
    suffice (as when the network divides by zero).

    >>> outputs = dokimos.evaluate(dokimos.read_suite("tiny").entries[0].network_path, [0.25] * 20)
    >>> outputs.is_exact, [round(float(value), 4) for value in outputs.lower]
    (True, [0.0005, 0.1758, -0.0005])
    """
    read = network if isinstance(network, Network) else read_network(network)
    return exact.evaluate(read, exact_point(point), relative_width=relative_width, max_bits=max_bits)
