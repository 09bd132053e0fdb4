"""What hunts, editions and tools in competitions leave, which others may have written."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np

from dokimos.api.editions import tool_card
from dokimos.campaigns.settings import RunSettings
from dokimos.core.strict_json import write
from dokimos.hunting.rounds import Hunt, HuntSettings, read_known
from dokimos.hunting.write_up import FindingForm
from dokimos.judging.edition import read_edition
from dokimos.judging.node_bounds import read_bounds
from dokimos.verifiers.catalogue import find

EDITION = b"""\
name = "A cup"
year = 2026
seed = 7
rules = ["vnncomp2026", "exact"]
[limits]
timeout = "60s"
memory = "4GB"
jobs = 2
[[categories]]
name = "bench"
folder = "../bench"
track = "regular"
pick = 3
[[tools]]
name = "mine"
verifier = "reference"
licence = "MIT"
"""
OVERRIDES = b"""\
[[overrides]]
tool = "mine"
category = "bench"
instance = "net__one"
rules = "exact"
standing = "nothing"
reason = "the benchmark was withdrawn"
"""
FINDING = FindingForm(
    name="reduced-0123456789",
    tool="mine",
    version="1",
    wrong="wrong-unsat",
    needed=("Relu",),
    operators=("MatMul", "Relu"),
    margin_size=-2,
    attack_off=False,
    node="",
    margin="1/8",
    numbers=3,
    before=90,
    asked=5,
    cpu_seconds=1.0,
    answer="unsat",
    own_answer="unsat",
    agrees=True,
)
ROUND = {
    "round": 0,
    "alike": {"mine wrong-unsat Relu": 2},
    "crashes": 0,
    "times": {"mine specs 9": [0.25, 1]},
    "slow": [],
    "kinds": {"specs": {"draws": 3, "instances": 5, "told": 2, "wrong": 1, "new": 1, "cpu_seconds": 0.5}},
    "seconds": 2.5,
    "cpu_seconds": 1.25,
}


def read_any_edition(path: Path, number: int) -> None:
    """An edition, or what its organisers set by hand, beside the other of the two."""
    for name, content in (("edition.toml", EDITION), ("overrides.toml", OVERRIDES)):
        if path.name != name:
            (path.parent / name).write_bytes(content)
    found = read_edition(path.parent)
    for tool in found.tools:
        tool_card(tool, find("reference"))


def read_any_finding(path: Path, number: int) -> None:
    """As `hunt --known` does, for the folder of a hunt and for a list."""
    folder = path.parent / "hunt" / "findings" / "mine-1"
    folder.mkdir(parents=True)
    (folder / "finding.json").symlink_to(path)
    read_known(path.parent / "hunt")
    read_known(path)


def read_any_hunt(path: Path, number: int) -> None:
    """A hunt that has had all of its rounds."""
    hunting = HuntSettings(rounds=0)
    Hunt([find("planted=ideal")], out=path.parent, settings=RunSettings(), hunting=hunting).run()


def findings() -> list[bytes]:
    return [write(FINDING).encode()]


def rounds() -> list[bytes]:
    return [b"".join(json.dumps({**ROUND, "round": k}).encode() + b"\n" for k in range(3))]


def read_any_bounds(path: Path, number: int) -> None:
    read_bounds(path)


def bounds() -> list[bytes]:
    file = io.BytesIO()
    np.savez_compressed(file, **{"a/lower": np.zeros((2, 2)), "a/upper": np.ones((2, 2))})
    plain = io.BytesIO()
    np.savez(plain, **{"a/b/lower": np.zeros(3), "a/b/upper": np.ones(3)})
    return [file.getvalue(), plain.getvalue()]
