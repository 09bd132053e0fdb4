"""Soundness probes: the same query without its output constraint must be `sat`.

Theorem. If every output is unsafe, every point of the box is a violation: the query is `sat` unless the box
is empty, whatever the network computes, over the reals and in float32 alike. So a verifier that answers
`unsat` to a probe has lost the input set, or confuses "no output constraint" with "nothing is unsafe"; its
other `unsat` answers on that network deserve no trust either.

Tools reject a property without output constraints, so a probe has one that always holds: Y_0 <= 0 or Y_0 >=
0.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np

from dokimos import __version__
from dokimos.checker.check import prove
from dokimos.core.errors import DokimosError
from dokimos.engine.outcome import claims_of
from dokimos.suites.entry import SuiteEntry, read_content
from dokimos.suites.folder import Suite, read_suite
from dokimos.suites.instance import Certificate, Instance, Label, LabelledInstance, Truth, sha256
from dokimos.suites.suite_files import files_of, store_files, write_index
from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Point
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.writer import write_vnnlib1

FAMILY = "probe"
_Y_0 = ((0, Fraction(1)),)
_MINUS_Y_0 = ((0, Fraction(-1)),)
#: Every number is at most 0 or at least 0.
ANYTHING: tuple[Conjunction, ...] = (
    (Linear((), _Y_0, Fraction(0)),),
    (Linear((), _MINUS_Y_0, Fraction(0)),),
)


@dataclass(frozen=True)
class Probes:
    """A suite of probes (None if there are none), and which instances have none, with the reason."""

    suite: Suite | None
    left_out: tuple[tuple[str, str], ...]


def write_probes(entries: Sequence[SuiteEntry], folder: Path) -> Probes:
    """Write the probes of `entries`, each proven, as a suite in `folder`, replacing what was there.

    Instances that differ only in their output constraint share one probe. An instance has no probe if its
    property cannot be written without its constraint, its box is empty, or the checker cannot evaluate the
    network; `left_out` lists these.
    """
    made: dict[str, LabelledInstance] = {}
    left_out = []
    for entry in entries:
        try:
            probe = make_probe(entry.read_instance())
        except DokimosError as error:
            left_out.append((entry.name, str(error)))
            continue
        made.setdefault(probe.instance.name, probe)
    if not made:
        return Probes(None, tuple(left_out))
    if there := _already(folder, made):
        return Probes(there, tuple(left_out))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for probe in made.values():
        store_files(folder, files_of(probe))
    longest = max(entry.timeout_seconds for entry in entries)
    write_index(
        folder,
        [(name, FAMILY) for name in made],
        longest,
        recipe={"probes": sorted({sha256(read_content(e.network_path)) for e in entries})},
        version=__version__,
    )
    return Probes(read_suite(folder), tuple(left_out))


def _already(folder: Path, made: Mapping[str, LabelledInstance]) -> Suite | None:
    """The suite in `folder`, if it holds exactly these probes: another process may be using them."""
    try:
        suite = read_suite(folder)
        found = {e.name: (e.network_sha256, e.property_sha256, e.read_truth()) for e in suite.entries}
    except DokimosError:
        return None
    wanted = {
        name: (probe.instance.network_sha256, probe.instance.property_sha256, probe.truth)
        for name, probe in made.items()
    }
    return suite if found == wanted else None


def make_probe(instance: Instance) -> LabelledInstance:
    """The probe of an instance, with a proof by a point of its box.

    Raises a DokimosError if there is none.
    """
    asked = read_vnnlib(instance.property_file, file=f"{instance.name}.vnnlib")
    cases = tuple(dict.fromkeys(Case(c.box, ANYTHING) for c in asked.cases if not c.box.is_empty))
    text = write_vnnlib1(replace(asked, cases=cases)).encode("ascii")
    probe = Instance(
        name=f"{FAMILY}-{sha256(instance.network_file + text)[:10]}",
        network_file=instance.network_file,
        property_file=text,
        timeout_seconds=instance.timeout_seconds,
        family=FAMILY,
    )
    witness = point_of(cases[0].box)
    certificate = Certificate("witness")
    proven = prove(probe, certificate, Label.SAT, witness)
    truth = Truth(
        label=Label.SAT,
        claims=claims_of(proven),
        certificate=certificate,
        network_sha256=probe.network_sha256,
        property_sha256=probe.property_sha256,
        witness=witness,
    )
    return LabelledInstance(probe, truth)


def point_of(box: Box) -> Point:
    """A point of the box, with float32 coordinates wherever the box contains one."""
    return tuple(_number_in(low, high) for low, high in zip(box.lower, box.upper, strict=True))


def _number_in(low: Fraction, high: Fraction) -> Fraction:
    for value in ((low + high) / 2, low, high):
        for candidate in _around(value):
            if low <= candidate <= high:
                return candidate
    return low


def _around(value: Fraction) -> list[Fraction]:
    """The float32 numbers next to a number; itself first, if it is one."""
    if abs(value) >= 2**127:
        return []
    near = np.float32(float(value))
    below, above = (np.nextafter(near, np.float32(end)) for end in (-np.inf, np.inf))
    return [Fraction(float(number)) for number in (near, below, above)]
