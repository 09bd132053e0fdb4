"""Ask again with the box cut down around the witness: `dokimos-studies narrow SUITE OUT INSTANCE...`.

For each instance that is proven `sat`, OUT gets the question about the one unsafe conjunction that holds at
its witness, on the whole box and on two small boxes around the witness. A verifier that answers `sat` on a
small box and `unsat` on the whole one contradicts itself.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import dokimos
from dokimos.core.errors import InputError
from dokimos.suites.vnnlib.model import Box, Case
from dokimos.suites.vnnlib.writer import write_vnnlib1

RADII = {"tiny": Fraction(1, 2**20), "small": Fraction(1, 2**8), "whole": None}


def main() -> None:
    """Write the suite of narrowed questions, without labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("instances", nargs="+", metavar="INSTANCE")
    given = parser.parse_args()
    out = given.out
    suite = dokimos.read_suite(given.suite)
    entries = [suite.entry(name) for name in given.instances]
    (out / "onnx").mkdir(parents=True)
    (out / "vnnlib").mkdir()
    rows = []
    for entry in entries:
        name = entry.name
        instance, truth = entry.read_instance(), entry.read_truth()
        if truth is None or truth.witness is None:
            raise InputError(f"{name} is not proven sat; name instances that are.")
        point = truth.witness
        asked = dokimos.read_property(instance.property_file)
        outputs = dokimos.evaluate(dokimos.read_network(instance.network_file), point).lower
        case = next(case for case in asked.cases if point in case.box)
        unsafe = next(c for c in case.any_of if all(one.holds(point, outputs) for one in c))
        (out / "onnx" / f"{name}.onnx").write_bytes(instance.network_file)
        for tag, radius in RADII.items():
            box = case.box if radius is None else around(point, radius, case.box)
            question = write_vnnlib1(replace(asked, cases=(Case(box, (unsafe,)),)))
            (out / "vnnlib" / f"{name}-{tag}.vnnlib").write_text(question, encoding="ascii")
            rows.append(f"onnx/{name}.onnx,vnnlib/{name}-{tag}.vnnlib,20\n")
    (out / "instances.csv").write_text("".join(rows), encoding="ascii")


def around(point: tuple[Fraction, ...], radius: Fraction, box: Box) -> Box:
    """The part of `box` within `radius` of `point`."""
    lower = (max(a, x - radius) for a, x in zip(box.lower, point, strict=True))
    upper = (min(b, x + radius) for b, x in zip(box.upper, point, strict=True))
    return Box(tuple(lower), tuple(upper))
