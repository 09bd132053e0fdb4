"""The shipped suites stay what they are: recorded_suites.json says what was made of each recipe.

Networks, properties and instances.csv are the same, byte for byte. A truth keeps its label and every
semantics that it was proven for, with at least the margin recorded; how it is proven may change.

A suite whose recipe changes on purpose is recorded anew, from the folder that holds it:
`python -m tests.constructions.test_recorded_suites NAME FOLDER`.
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dokimos.suites.folder import Suite, read_suite, shipped_names
from dokimos.suites.instance import Semantics, Truth
from dokimos.suites.vnnlib.text import parse_decimal
from dokimos.suites.vnnlib.writer import exact_decimal
from tests.making import shipped_once

RECORD = Path(__file__).with_name("recorded_suites.json")
RECORDED: dict[str, dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))
#: Some margins come from a linear program, whose last digits are not those of every machine.
LP_DIGITS = Fraction(1, 10**8)
#: These take longer than all others together.
LONG = (
    *("axes", "ladder", "large", "precision", "quantised", "relaxations", "thorough", "twins"),
    *("veristress", "veristress-wide", "wrapped-ops"),
)
SUITES = [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in RECORDED]


def digest(folder: Path) -> tuple[int, str]:
    """How many files a verifier gets, and the hash of their paths and hashes."""
    paths = sorted([folder / "instances.csv", *folder.glob("onnx/*"), *folder.glob("vnnlib/*")])
    lines = (f"{p.relative_to(folder).as_posix()} {sha256(p.read_bytes()).hexdigest()}\n" for p in paths)
    return len(paths), sha256("".join(lines).encode()).hexdigest()


def claims(truth: Truth) -> str:
    """The label, and the margins over the reals and in float32, - where it is not proven."""
    shown = (Semantics.REAL, Semantics.FLOAT32)
    margins = (truth.claim(each).margin if truth.holds_in(each) else None for each in shown)
    return " ".join([truth.label.value, *("-" if m is None else exact_decimal(m) for m in margins)])


def truths_of(suite: Suite) -> dict[str, str]:
    """The claims on each instance, by name."""
    found = {entry.name: entry.read_truth() for entry in suite.entries}
    return {name: claims(truth) for name, truth in found.items() if truth is not None}


def test_every_shipped_suite_is_recorded() -> None:
    assert sorted(RECORDED) == shipped_names()


@pytest.mark.parametrize("name", SUITES)
def test_a_shipped_suite_is_what_it_was(name: str, run_folder: Path) -> None:
    suite = shipped_once(run_folder, name)
    recorded = RECORDED[name]
    assert digest(suite.folder) == (recorded["files"], recorded["sha256"])
    made = truths_of(suite)
    assert made.keys() == recorded["truths"].keys()
    for instance, before in recorded["truths"].items():
        (label, *margins), (same, *least) = made[instance].split(), before.split()
        assert label == same
        for margin, bound in zip(margins, least, strict=True):
            assert bound == "-" or parse_decimal(margin) >= (1 - LP_DIGITS) * parse_decimal(bound)


def record(name: str, folder: Path) -> None:
    """Put what the suite in `folder` holds into the record."""
    files, hashed = digest(folder)
    RECORDED[name] = {"files": files, "sha256": hashed, "truths": truths_of(read_suite(folder))}
    text = json.dumps(RECORDED, indent=1, sort_keys=True)
    RECORD.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(sys.argv[1], Path(sys.argv[2]))
