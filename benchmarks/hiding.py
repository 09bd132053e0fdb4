"""How well the twins' counterexamples are hidden: the rate of every attack on every family.

    python benchmarks/hiding.py [--full] [--draws 3] [--seconds 1] [--lock BITS] [--short]
        [family [knob=value ...]]

For each family, every attack has so many CPU-seconds for each of the violated twins of a few seeds. Printed
is a table in Markdown: how many it finds, each replayed exactly, and how many stay hidden from all. Of all
families, only one seed and a tenth of a second each, unless --full is given: that takes ten minutes. With
--short, it names the attacks that find all of them, and those that find some, as docs/families.md does.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable

from dokimos.constructions import CONSTRUCTIONS
from dokimos.core.errors import DokimosError
from dokimos.engine.attacks import ATTACKS
from dokimos.engine.attacks.base import Budget
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.instance import Instance
from dokimos.suites.vnnlib.reader import read_vnnlib

#: Nothing is hidden in these.
OPEN = ("ops",)
#: With fewer inputs than a lock needs at its defaults.
MORE_INPUTS = {"constant-on-box": 25, "disjuncts": 25, "exclusive-pairs": 25}


def twins(family: str, knobs: dict[str, str], draws: int, lock: int | None) -> list[Instance]:
    if lock is not None and family in MORE_INPUTS:
        knobs = {"inputs": str(MORE_INPUTS[family])} | knobs
    found = []
    for seed in range(draws):
        drawn = CONSTRUCTIONS[family].draw(
            seed=seed, timeout_seconds=60, disguise=(), with_twin=True, knobs=knobs, lock=lock
        )
        found.append(drawn.instances[1].instance)
    return found


def seconds_to_find(attack: str, instance: Instance, seconds: float) -> float | str | None:
    """The CPU time until a counterexample; None where none is found; why the attack does not apply."""
    network = read_onnx(instance.network_file)
    question = read_vnnlib(instance.property_file, file=instance.name)
    start = time.process_time()
    try:
        budget = Budget(cpu_seconds=seconds, until_found=True)
        found = ATTACKS[attack](network, question, seed=0, budget=budget)
    except DokimosError as error:
        return str(error)
    return time.process_time() - start if found.witness is not None else None


def listed(names: list[str], tried: Iterable[str]) -> str:
    """The names; if they are almost all that were tried, those that are missing."""
    missing = [name for name in tried if name not in names]
    if 0 < len(missing) < 6 < len(names):
        return f"{len(names)} of {len(names) + len(missing)}, all but " + listed(missing, ())
    return ", ".join(f"`{name}`" for name in names) or "–"


def short_row(family: str, hidden: str, found: dict[str, tuple[int, int]]) -> str:
    """A row that names attacks; `found` says how many twins each found, of how many to which it applies."""
    all_of_them = [name for name, (count, tried) in found.items() if count == tried > 0]
    some = [name for name, (count, tried) in found.items() if 0 < count < tried]
    barred = [name for name, (_, tried) in found.items() if not tried]
    cells = [listed(all_of_them, found), listed(some, ()), listed(barred, ())]
    return f"| {family} | {hidden} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--lock", type=int)
    parser.add_argument("--attacks", default=",".join(sorted(ATTACKS)))
    parser.add_argument("--short", action="store_true")
    parser.add_argument("family", nargs="?")
    parser.add_argument("knobs", nargs="*", help="knob=value")
    options = parser.parse_args()
    full = options.full or options.family is not None
    options.draws = options.draws or (3 if full else 1)
    options.seconds = options.seconds or (1.0 if full else 0.1)
    attacks = options.attacks.split(",")
    knobs = dict(text.split("=", 1) for text in options.knobs)
    families = [options.family] if options.family else [name for name in CONSTRUCTIONS if name not in OPEN]
    if options.lock is not None:
        families = [name for name in families if name != "parity-lock"]
    heads = (
        ["found all", "found some", "do not apply"] if options.short else [f"`{one}`" for one in attacks]
    )
    print("| family | hidden from all | " + " | ".join(heads) + " |", flush=True)
    print("|---|---|" + "---|" * len(heads), flush=True)
    for family in families:
        instances = twins(family, knobs, options.draws, options.lock)
        hidden, found = set(range(len(instances))), {}
        for attack in attacks:
            times = [seconds_to_find(attack, one, options.seconds) for one in instances]
            hits = [k for k, t in enumerate(times) if isinstance(t, float)]
            hidden -= set(hits)
            found[attack] = (len(hits), sum(not isinstance(t, str) for t in times))
        left = f"{len(hidden)}/{len(instances)}"
        if options.short:
            print(short_row(family, left, found), flush=True)
        else:
            cells = [f"{count}/{tried}" if tried else "n/a" for count, tried in found.values()]
            print(f"| {family} | {left} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
