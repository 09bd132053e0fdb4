"""A database of labels, keyed by what an instance means: its network and its property after reading.

The key does not change if a file is renamed, compressed or exported again with other names, nor if the
cases, disjuncts or constraints of a property come in another order. A record has no network and no
property: they are joined from the user's own files, and the checker proves a label again before it is given
out.

Each record is a file of its own in the folder of the database, `<key>.json`, so that nothing that is
interrupted leaves half a record. A database to pass on is one file, `NAME.jsonl.gz`, with a record in each
line; it is written whole.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.core import strict_json
from dokimos.core.errors import InputError, Place, UnreadableFile
from dokimos.core.files import home, write_whole
from dokimos.core.readable import printable
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.summary import operators_on_data
from dokimos.suites.entry import SuiteEntry, exists, load_truth, read_content, read_text
from dokimos.suites.instance import Instance, Semantics
from dokimos.suites.vnnlib.model import Case, Linear, Property
from dokimos.suites.vnnlib.reader import read_vnnlib

_WHAT = "a record of the database of labels"
_PACKED = ".jsonl.gz"
_KEY = re.compile(r"[0-9a-f]{64}")


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
    """A database in a folder, by default in Dokimos' home, or in one file."""

    place: Path

    @classmethod
    def at(cls, place: Path | None) -> Database:
        """The database in a folder or a file, or in Dokimos' home. Raises InputError for other files."""
        if place is not None and place.is_file() and not place.name.endswith(_PACKED):
            raise InputError(f"{place}: a database is a folder, or a file NAME{_PACKED}.")
        return cls(home() / "database" if place is None else place)

    @property
    def is_packed(self) -> bool:
        """Whether it is one file."""
        return self.place.name.endswith(_PACKED)

    def __iter__(self) -> Iterator[KeptLabel]:
        """All records, in the order of their keys."""
        if self.is_packed:
            yield from self._packed.values()
        else:
            for path in sorted(self.place.glob("*.json")):
                yield self._read(read_text(path), path)

    def get(self, key: str) -> KeptLabel | None:
        """The record of a key; None if there is none."""
        if self.is_packed:
            return self._packed.get(key)
        path = self.place / f"{key}.json"
        return self._read(read_text(path), path) if exists(path) else None

    def add(self, entry: SuiteEntry, seen: Seen, answers: Sequence[Said] = (), *, found: str) -> KeptLabel:
        """Keep the label of an instance, which the caller has proven: see `record_of` and `keep`."""
        (kept,) = self.keep([record_of(entry, seen, answers, found=found)])
        return kept

    def keep(self, records: Iterable[KeptLabel]) -> list[KeptLabel]:
        """Keep these records, or add where they occur and who answered what to those that are kept.

        A label that contradicts the one that is kept is refused: raises InputError.
        """
        found: dict[str, KeptLabel] = {}
        for one in records:
            before = found.get(one.key) or self.get(one.key) or one
            if before.label != one.label:
                raise InputError(
                    f"{_where(one)}: says {one.label}, and the database {before.label} ({one.key[:12]}); "
                    "one of the two proofs is wrong: check both."
                )
            found[one.key] = replace(
                before,
                seen=tuple(dict.fromkeys((*before.seen, *one.seen))),
                answers=tuple(dict.fromkeys((*before.answers, *one.answers))),
            )
        if self.is_packed:
            every = {one.key: one for one in self} | found
            lines = [strict_json.write(every[key], indent=None) for key in sorted(every)]
            packed = gzip.compress("".join(lines).encode(), mtime=0)
            write_whole(self.place, packed, what="the database", durable=True)
        else:
            for one in found.values():
                text = strict_json.write(one)
                write_whole(self.place / f"{one.key}.json", text, what="the record", durable=True)
        return list(found.values())

    @property
    def _packed(self) -> dict[str, KeptLabel]:
        if not exists(self.place):
            return {}
        lines = enumerate(read_text(self.place).splitlines(), start=1)
        records = [self._read(line, Place(str(self.place), number)) for number, line in lines]
        return {one.key: one for one in sorted(records, key=lambda one: one.key)}

    def _read(self, text: str, file: Path | Place) -> KeptLabel:
        found = strict_json.read(text, KeptLabel, file=file, what=_WHAT)
        if not _KEY.fullmatch(found.key):  # it names a file
            raise UnreadableFile(file, f"{_WHAT} has a key of 64 hexadecimal digits")
        return found


def record_of(entry: SuiteEntry, seen: Seen, answers: Sequence[Said] = (), *, found: str) -> KeptLabel:
    """The record of a labelled instance."""
    text = read_text(entry.truth_path)
    truth = load_truth(text, file=str(entry.truth_path))
    asked = read_vnnlib(read_content(entry.property_path), file=str(entry.property_path))
    margin = truth.claim(Semantics.REAL).margin
    return KeptLabel(
        key_of(entry),
        truth.label.value,
        truth.certificate.kind,
        None if margin is None else float(margin),
        truth.holds_in(Semantics.REAL),
        truth.holds_in(Semantics.FLOAT32),
        asked.input_size,
        asked.output_size,
        tuple(sorted(operators_on_data(read_content(entry.network_path)))),
        found,
        strict_json.write(
            strict_json.parse(read_text(entry.truth_path), file=entry.truth_path), indent=None
        ),
        (seen,),
        tuple(answers),
    )


def _where(one: KeptLabel) -> str:
    return printable("/".join((one.seen[0].benchmark, one.seen[0].instance)) if one.seen else one.key[:12])


def truth_for(kept: KeptLabel, instance: Instance) -> Mapping[str, Any]:
    """The truth file of a record for this instance, which has the same meaning and perhaps other files."""
    document = strict_json.parse(kept.truth, file=kept.key)
    document["sha256"] = {"network": instance.network_sha256, "property": instance.property_sha256}
    assert isinstance(document, dict)
    return document
