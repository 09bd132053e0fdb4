"""A network and a property outside any suite: a suite of one instance is made for them when needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.core.home import home
from dokimos.suites.entry import exists, read_content
from dokimos.suites.folder import Suite, instance_name, read_suite
from dokimos.suites.instance import sha256

#: The default time limit of an instance outside any suite.
TIMEOUT_SECONDS = 60
_NETWORKS, _PROPERTIES = (".onnx", ".onnx.gz"), (".vnnlib", ".vnnlib.gz")


def is_network(name: str | Path) -> bool:
    """Whether a path is that of a network, by its name."""
    return str(name).endswith(_NETWORKS)


def pair_suite(network: Path, property_: Path, *, folder: Path | None = None) -> Suite:
    """The suite of one instance: `network` with `property_`, copied to `folder`.

    Without a folder it is kept in Dokimos' home, under the hashes of the contents: labels and profiles of
    the same files are found there again.
    """
    contents = [read_content(path) for path in (network, property_)]
    name = instance_name(network.name, property_.name)
    if folder is None:
        folder = home() / "pairs" / sha256("|".join(map(sha256, contents)).encode())[:16] / name
    stems = [path.name.removesuffix(".gz") for path in (network, property_)]
    places = [Path("onnx", stems[0]), Path("vnnlib", stems[1])]
    table = folder / "instances.csv"
    row = f"{places[0]},{places[1]},{TIMEOUT_SECONDS}\n"
    if exists(table) and table.read_text(encoding="utf-8") != row:
        raise InputError(f"{folder} is another suite; choose another folder.")
    for place, content in zip(places, contents, strict=True):
        if not exists(folder / place) or read_content(folder / place) != content:
            write_whole(folder / place, content, what="the copy")
    if not exists(table):
        write_whole(table, row, what="the table of instances")
    return read_suite(folder)


def with_pairs(given: Sequence[str | Path | Suite]) -> list[str | Path | Suite]:
    """The given paths, with each network and the property after it replaced by the suite of this pair.

    Raises InputError for a network without a property, or the other way round.
    """
    found: list[str | Path | Suite] = []
    waiting: Path | None = None
    for each in given:
        name = "" if isinstance(each, Suite) else str(each)
        if waiting is not None:
            if not name.endswith(_PROPERTIES):
                break
            found.append(pair_suite(waiting, Path(name)))
            waiting = None
        elif is_network(name):
            waiting = Path(name)
        elif name.endswith(_PROPERTIES):
            raise InputError(f"{name} is a property; give its network before it: NETWORK PROPERTY.")
        else:
            found.append(each)
    if waiting is not None:
        raise InputError(f"{waiting} is a network; give its property after it: NETWORK PROPERTY.")
    return found
