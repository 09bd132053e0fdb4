"""A database of labels, keyed by what an instance means: its network and its property after reading.

The key does not change if a file is renamed, compressed or exported again with other names, nor if the
cases, disjuncts or constraints of a property come in another order. A record has no network and no
property: they are joined from the user's own files, and the checker proves a label again before it is given
out.

Each record is a file of its own in the folder of the database, `<key>.json`, so that nothing that is
interrupted leaves half a record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.core import strict_json
from dokimos.core.errors import InputError
from dokimos.core.files import home, write_whole
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.summary import operators_on_data
from dokimos.suites.entry import SuiteEntry, exists, load_truth, read_content, read_text
from dokimos.suites.instance import Instance, Semantics
from dokimos.suites.vnnlib.model import Case, Linear, Property
from dokimos.suites.vnnlib.reader import read_vnnlib

_WHAT = "a record of the database of labels"


@dataclass(frozen=True)
class Seen:
    """Where an instance occurs: the benchmark, its name there, and the year (0: not known)."""

    benchmark: str
    instance: str
    year: int = 0


@dataclass(frozen=True)
class Said:
    """What a tool answered on it, in which year, and in how many seconds."""

    tool: str
    year: int
    answer: str
    seconds: float


@dataclass(frozen=True)
class KeptLabel:
    """What is known of an instance: its key, label and proof, its size, where it occurs, who answered what.

    `truth` is the text of a truth file, which names the files that were labelled by their hashes. `margin`
    is by how much the label is proven over the reals, if that is known; `found` is when it was.
    """

    key: str
    label: str
    kind: str
    margin: float | None
    real: bool
    float32: bool
    inputs: int
    outputs: int
    operators: tuple[str, ...]
    found: str
    truth: str
    seen: tuple[Seen, ...] = ()
    answers: tuple[Said, ...] = ()

    @property
    def years(self) -> frozenset[int]:
        """The years in which it was asked, as far as they are known."""
        named = {one.year for one in self.seen} | {one.year for one in self.answers}
        return frozenset(named - {0})


# What an instance means


def meaning(network: Network, asked: Property) -> str:
    """The key of an instance.

    Equal keys mean equal questions, unless SHA-256 collides: the text that is hashed spells the graph that
    the output depends on, with every constant, and the property, up to the order of its cases, conjunctions
    and constraints. The reverse does not hold: equal functions may be spelled by other operators.
    """
    digest = hashlib.sha256()
    for part in _network_parts(network):
        digest.update(part)
    digest.update("\n".join(sorted(set(map(_case, asked.cases)))).encode())
    digest.update(repr(asked.products).encode())
    digest.update(repr([(n.input_shape, n.output_shape) for n in asked.networks]).encode())
    return digest.hexdigest()


def _network_parts(network: Network) -> Iterator[bytes]:
    """The graph from its output backwards: tensors are numbered in the order in which they are met."""
    writer = {node.output: node for node in network.nodes}
    numbers: dict[str, int] = {}
    waiting = [network.output]
    while waiting:
        name = waiting.pop()
        if name in numbers:
            continue
        numbers[name] = len(numbers)
        if name in writer:
            waiting += reversed([each for each in writer[name].inputs if each])
    yield repr((network.dtype.str, len(numbers))).encode()
    for name in numbers:
        if name == network.input:
            yield repr(("input", network.shapes[name])).encode()
        elif name in writer:
            node = writer[name]
            inputs = tuple(numbers[each] if each else -1 for each in node.inputs)
            yield repr((node.op, inputs, sorted((k, repr(v)) for k, v in node.attributes.items()))).encode()
        else:
            array = np.ascontiguousarray(network.constants[name])
            yield repr((array.dtype.str, array.shape)).encode() + array.tobytes()


def _case(case: Case) -> str:
    box = ",".join(f"{low}:{high}" for low, high in zip(case.box.lower, case.box.upper, strict=True))
    parts = sorted({"&".join(sorted(set(map(_constraint, part)))) for part in case.any_of})
    return f"{box}|{'/'.join(parts)}"


def _constraint(one: Linear) -> str:
    """A constraint divided by the size of its first factor, so that multiples of it are the same."""
    terms = [("x", i, c) for i, c in sorted(one.inputs) if c]
    terms += [("y", j, c) for j, c in sorted(one.outputs) if c]
    size = abs(terms[0][2]) if terms else 1
    words = "".join(f"{kind}{index}*{factor / size}" for kind, index, factor in terms)
    return f"{words}{'<' if one.strict else '<='}{one.bound / size}"


def key_of(entry: SuiteEntry) -> str:
    """The key of an instance of a suite. Raises InputError if Dokimos does not read one of its files."""
    network = read_onnx(read_content(entry.network_path), name=str(entry.network_path))
    return meaning(network, read_vnnlib(read_content(entry.property_path), file=str(entry.property_path)))


# The folder


@dataclass(frozen=True)
class Database:
    """A database in a folder; by default, in Dokimos' home."""

    folder: Path

    @classmethod
    def at(cls, folder: Path | None) -> Database:
        """The database in a folder, or in Dokimos' home."""
        return cls(home() / "database" if folder is None else folder)

    def __iter__(self) -> Iterator[KeptLabel]:
        """All records, in the order of their keys."""
        for path in sorted(self.folder.glob("*.json")):
            yield self._read(path)

    def get(self, key: str) -> KeptLabel | None:
        """The record of a key; None if there is none."""
        path = self.folder / f"{key}.json"
        return self._read(path) if exists(path) else None

    def add(self, entry: SuiteEntry, seen: Seen, answers: Sequence[Said] = (), *, found: str) -> KeptLabel:
        """Keep the label of an instance, which the caller has proven, or add to what is kept of it.

        A label that contradicts the one that is kept is refused: raises InputError.
        """
        truth = load_truth(read_text(entry.truth_path), file=str(entry.truth_path))
        key = key_of(entry)
        before = self.get(key)
        if before is None:
            asked = read_vnnlib(read_content(entry.property_path), file=str(entry.property_path))
            margin = truth.claim(Semantics.REAL).margin
            before = KeptLabel(
                key,
                truth.label.value,
                truth.certificate.kind,
                None if margin is None else float(margin),
                truth.claim(Semantics.REAL).proven,
                truth.claim(Semantics.FLOAT32).proven,
                asked.input_size,
                asked.output_size,
                tuple(sorted(operators_on_data(read_content(entry.network_path)))),
                found,
                read_text(entry.truth_path),
            )
        if before.label != truth.label.value:
            raise InputError(
                f"{entry.truth_path}: says {truth.label.value}, and the database {before.label} "
                f"({before.key[:12]}); one of the two proofs is wrong: check both."
            )
        kept = replace(
            before,
            seen=tuple(dict.fromkeys((*before.seen, seen))),
            answers=tuple(dict.fromkeys((*before.answers, *answers))),
        )
        write_whole(self.folder / f"{key}.json", strict_json.write(kept), what="the record", durable=True)
        return kept

    def _read(self, path: Path) -> KeptLabel:
        return strict_json.read(read_text(path), KeptLabel, file=path, what=_WHAT)


def truth_for(kept: KeptLabel, instance: Instance) -> Mapping[str, Any]:
    """The truth file of a record for this instance, which has the same meaning and perhaps other files."""
    document = strict_json.parse(kept.truth, file=kept.key)
    document["sha256"] = {"network": instance.network_sha256, "property": instance.property_sha256}
    assert isinstance(document, dict)
    return document
