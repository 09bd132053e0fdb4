"""Converts instances to the version of VNN-LIB that a verifier reads."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from dokimos.core.errors import UnreadableFile
from dokimos.suites.entry import read_onnx_file, read_vnnlib_file
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import is_version_2, read_vnnlib
from dokimos.suites.vnnlib.writer import Version, write_vnnlib1, write_vnnlib_file

# Converts to VNN-LIB 1.0, for verifiers that read nothing else


def in_vnnlib1(content: bytes, *, file: str) -> bytes:
    """The property in VNN-LIB 1.0, with the same decimals; the content itself if it is already 1.0.

    An unreadable property stays as it is, so that the verifier reports the problem. Raises InputError if
    1.0 cannot express it, as with strict comparisons.
    """
    if not is_version_2(content.decode("utf-8-sig", "replace")):
        return content
    try:
        asked = read_vnnlib(content, file=file)
    except UnreadableFile:
        return content
    return write_vnnlib1(asked).encode()


# Converts to VNN-LIB 2.0, for verifiers that read nothing else


INPUT_NAME = "X"
OUTPUT_NAME = "Y"
NETWORK_NAME = "f"
_HEAD_CHARACTERS = 1 << 16
_FIRST_NETWORK = re.compile(r"^[^;\n]*\(\s*declare-network\s+([^\s()]+)", re.MULTILINE)


def declared_network(property_file: Path) -> str | None:
    """The name of the first network that the file declares; None for VNN-LIB 1.0, which names none."""
    with property_file.open(encoding="utf-8", errors="replace") as file:
        match = _FIRST_NETWORK.search(file.read(_HEAD_CHARACTERS))
    return match[1] if match else None


def in_vnnlib2(property_file: Path, network_file: Path, *, folder: Path) -> tuple[Path, str]:
    """The property in VNN-LIB 2.0, and the name that it gives its network.

    It is the file itself if that is already 2.0; otherwise a new file in `folder`, whose tensors have the
    network's shapes and whose numbers are the same decimals.
    """
    if (name := declared_network(property_file)) is not None:
        return property_file, name
    asked = read_vnnlib_file(property_file)
    if len(asked.networks) != 1:
        raise UnreadableFile(property_file, "it names several networks, but there is only one file")
    network = read_onnx_file(network_file)
    signature = replace(
        asked.networks[0],
        name=NETWORK_NAME,
        input_name=INPUT_NAME,
        input_shape=network.input_shape,
        output_name=OUTPUT_NAME,
        output_shape=network.output_shape,
    )
    path = folder / "query.vnnlib"
    write_vnnlib_file(Property((signature,), asked.cases), path, version=Version.TWO)
    return path, NETWORK_NAME
