"""What a hunt finds: proven draws a CPU-minute, and planted bugs found blind and made small.

hunting.py [--full] [--bug NAME]... [--seconds 10] [--draws 30] [--together]

Draws come from all kinds in turn. Each bug (default: three of those behind an attack, which is off) is
asked in this process about random draws until it is wrong; the wrong answer is then made small. Prints a
line for each. With `--together`, all bugs behind an attack are asked about the same draws, none of which is
chosen by what was found: a bug takes the time of all draws until then and that of its own answers, and
nothing is made small. `--full` asks one bug in eight, with 600 CPU-seconds for each, and draws 200.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.hunting.in_process import InProcess

from dokimos.hunting.proven_draws import Bandit, draw, kinds
from dokimos.hunting.reduction import Reducer, cause_of
from dokimos.hunting.specimen import LEAST_MARGIN, LabelProver, margin_of, specimen_of
from dokimos.hunting.write_up import wrong_of
from dokimos.suites.instance import Semantics
from dokimos.verifiers.planted.catalogue import ATTACKERS


def draws_a_minute(number: int) -> float:
    """How many proven instances are drawn in a CPU-minute."""
    rng, every = np.random.default_rng(0), kinds()
    families = sorted({kind.family for kind in every})
    begun, made = time.process_time(), 0
    for k in range(number):
        own = [kind for kind in every if kind.family == families[k % len(families)]]
        made += len(draw(own[int(rng.integers(len(own)))], np.random.default_rng([1, k]), ()))
    return 60 * made / (time.process_time() - begun)


def hunted(bug: str, seconds: float) -> str:
    """When a bug was found, and what is left of it; both within so many CPU-seconds."""
    asker, bandit = InProcess(bug), Bandit(kinds())
    rng, begun = np.random.default_rng(1), time.process_time()
    for number in count():
        if time.process_time() - begun > seconds:
            return f"not found in {seconds:g} CPU-s and {number} draws"
        kind = bandit.choose(rng)
        for labelled in draw(kind, np.random.default_rng([2, number]), ()):
            wrong = wrong_of(asker.ask(labelled), labelled)
            if wrong is None or wrong.crash:
                continue
            found = time.process_time() - begun
            assert labelled.truth is not None
            start = specimen_of(labelled.instance, labelled.truth)
            least = min(LEAST_MARGIN, margin_of(labelled.truth))
            is_float32 = labelled.truth.claim(Semantics.FLOAT32).proven
            prover = LabelProver(least, is_float32=is_float32)
            reducer = Reducer(asker, wrong, prover, lambda _: None, most_seconds=seconds)
            small = reducer.run(replace(start))
            needed = ", ".join(cause_of(small, wrong, asker, prover, least).needed) or "no control"
            took = time.process_time() - begun - found
            return (
                f"{wrong.in_words} by {kind.name} after {found:.1f} CPU-s and {number + 1} draws; "
                f"{start.numbers} numbers became {small.numbers} in {took:.1f} CPU-s ({needed})"
            )
    raise AssertionError("count has no end")


def hunted_together(bugs: Sequence[str], seconds: float) -> None:
    """Print when each bug was found, in the order in which they are, and those that were not."""
    left = {bug: InProcess(bug) for bug in bugs}
    own = dict.fromkeys(bugs, 0.0)
    chooser, rng, drawing = Bandit(kinds()), np.random.default_rng(3), 0.0
    for number in count():
        begun = time.process_time()
        made = draw(chooser.choose(rng), np.random.default_rng([4, number]), ())
        drawing += time.process_time() - begun
        for bug, asker in list(left.items()):
            begun = time.process_time()
            wrong = [wrong_of(asker.ask(each), each) for each in made]
            own[bug] += time.process_time() - begun
            met = next((each for each in wrong if each and not each.crash and not each.is_rounding), None)
            if met is not None:
                took = drawing + own[bug]
                print(f"{bug}: {met.in_words} after {took:.1f} CPU-s and {number + 1} draws", flush=True)
                del left[bug]
            elif drawing + own[bug] > seconds:
                print(f"{bug}: not found in {seconds:g} CPU-s and {number + 1} draws", flush=True)
                del left[bug]
        if not left:
            return


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--bug", action="append", default=[])
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--together", action="store_true")
    options = parser.parse_args()
    options.seconds = options.seconds or (600.0 if options.full else 10.0)
    options.draws = options.draws or (200 if options.full else 30)
    if options.together:
        hunted_together(options.bug or [each.name for each in ATTACKERS[1:]], options.seconds)
        return
    print(f"{draws_a_minute(options.draws):.0f} proven instances a CPU-minute", flush=True)
    for bug in options.bug or [each.name for each in ATTACKERS[1 :: 8 if options.full else 40]]:
        print(f"{bug}: {hunted(bug, options.seconds)}", flush=True)


if __name__ == "__main__":
    main()
