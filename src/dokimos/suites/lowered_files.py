"""Instances of several networks, or whose property multiplies variables, as two ordinary files.

Lowered files (`properties/lowering.py`) are kept in Dokimos' home, under the hashes of their sources.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from dokimos.core.errors import UnreadableFile
from dokimos.core.files import write_whole
from dokimos.core.home import home
from dokimos.properties.reading import is_version_2, read_vnnlib, without_comments
from dokimos.suites.entry import exists, read_content
from dokimos.suites.instance import sha256

#: Changes whenever other files are written for the same property.
_FORM = 1
_HEAD_BYTES = 4096
_PRODUCT = re.compile(r"\(\s*\*")
#: A number times a variable, as in linear constraints.
_LINEAR = re.compile(r"\(\s*\*\s+(?:[-+0-9.]+\s+[A-Za-z][^\s()]*|[A-Za-z][^\s()]*\s+[-+0-9.]+)\s*\)")
_GZIP = b"\x1f\x8b"


def lowered_files(networks: Mapping[str, Path], property_: Path, *, stem: str) -> tuple[Path, Path]:
    """The network and the property that the files are lowered to; networks are given by their names in the
    property.

    Raises InputError if they do not fit together, UnreadableFile if one cannot be read.
    """
    from dokimos.properties.lowering import lower
    from dokimos.properties.writing import write_vnnlib2

    contents = {name: read_content(path) for name, path in networks.items()}
    text = read_content(property_)
    hashes = {name: sha256(content) for name, content in contents.items()}
    key = sha256(json.dumps([_FORM, hashes, sha256(text)], sort_keys=True).encode())
    folder = home() / "lowered" / key[:16]
    network = folder / f"{stem}.onnx"
    asked = folder / f"{property_.name.removesuffix('.gz').removesuffix('.vnnlib')}.vnnlib"
    if not (exists(network) and exists(asked)):
        lowered = lower(read_vnnlib(text, file=str(property_)), contents)
        files = ", ".join(f"{name} = {path.name.removesuffix('.gz')}" for name, path in networks.items())
        written = write_vnnlib2(lowered.property, comment=f"{property_.name} of {files}, lowered")
        write_whole(network, lowered.network, what="the lowered network")
        write_whole(asked, written, what="the lowered property")
    return network, asked


def multiplying_network(property_: Path) -> str | None:
    """The name of the network whose property multiplies variables; None for all others.

    Most files are not read to the end for this; a file that cannot be read is reported later, when it is
    needed.
    """
    with suppress(OSError, ValueError, zlib.error, UnreadableFile):
        with property_.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head.startswith(_GZIP):
            head = zlib.decompressobj(wbits=31).decompress(head, 16 * _HEAD_BYTES)
        is_new = is_version_2(head.decode("utf-8-sig", "replace"))
        if is_new is False:
            return None
        content = read_content(property_)
        text = without_comments(content.decode("utf-8-sig"))
        if (is_new or is_version_2(text)) and len(_PRODUCT.findall(text)) > len(_LINEAR.findall(text)):
            asked = read_vnnlib(content, file=str(property_))
            if asked.products and len(asked.networks) == 1:
                return asked.networks[0].name
    return None
