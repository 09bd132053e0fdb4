"""Hiding by training with and without each of the two ideas of SoundnessBench, into folders of OUT.

    dokimos-studies ablation OUT --arch mlp4 --input 10 --epsilon 0.2 --points 5

The ideas are the two-sided margin at the plant, and the window of counterexamples that training uses.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dokimos
from dokimos.core import strict_json
from dokimos.core.files import read_whole
from dokimos.suites.folder import HIDE_REPORT
from dokimos_studies.command_line import on_stderr, positive


def ablate(out: Path, settings: dokimos.HideSettings) -> Iterator[str]:
    """Train in four ways; a line of a table for each."""
    yield "| margin at the plant | trained on | planted | proven | hidden |"
    yield "|---|---|---|---|---|"
    for two_sided, sliding in ((True, True), (False, True), (True, False), (False, False)):
        margin = "two-sided" if two_sided else "one-sided"
        place = out / f"{margin}-{'window' if sliding else 'last-attack'}"
        chosen = replace(settings, two_sided=two_sided, sliding=sliding)
        dokimos.hide(chosen, out=place, progress=on_stderr)
        report = strict_json.parse(read_whole(place / HIDE_REPORT), file=place / HIDE_REPORT)
        counts = " | ".join(str(report[key]) for key in ("planted", "proven", "hidden"))
        yield f"| {margin} | {'the window' if sliding else 'the last attack'} | {counts} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--arch", default="mlp4")
    parser.add_argument("--input", default="10", help="such as 10 or 1x5x5")
    parser.add_argument("--epsilon", type=float, default=0.2)
    parser.add_argument("--points", type=positive, default=5)
    parser.add_argument("--prove", type=float, default=5.0, help="seconds for proving a point robust")
    given = parser.parse_args()
    settings = dokimos.HideSettings(
        tier="trained",
        architecture=given.arch,
        input_shape=tuple(positive(each) for each in given.input.split("x")),
        epsilon=given.epsilon,
        points=given.points,
        prove_seconds=given.prove,
    )
    for line in ablate(given.out, settings):
        print(line, flush=True)
