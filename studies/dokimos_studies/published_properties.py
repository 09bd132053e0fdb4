"""Write studies/results/published-properties.md: boxes, brackets and accuracies of published networks.

    dokimos-studies published-properties FOLDER [--images 500] [--work FOLDER] [--only PART] [--only-page]

FOLDER has `oval21` and `cifar10_resnet` as published. What is done is kept in the work folder, line by
line, so that an interrupted run goes on; --only-page writes the page of what is there. The parts are boxes,
oval, ends, resnet_2b and resnet_4b; several processes can do one part each in the same work folder.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.constructions.data.brackets import (
    Effort,
    Share,
    Style,
    Wishes,
    asked_at,
    broken_radii,
    prove_at,
    proven_radius,
    resisting,
)
from dokimos.constructions.data.catalogue import load_data, recover
from dokimos.constructions.data.data_set import KNOWN, Classifier, DataSet, read_classifier
from dokimos.constructions.data.property_suites import make_suite
from dokimos.core.errors import InputError
from dokimos.core.files import append_line, write_whole
from dokimos.engine.attacks.base import Budget

PAGE = Path(__file__).parents[1] / "results" / "published-properties.md"
SHAPE = (3, 32, 32)
BUDGET = Budget(restarts=5, steps=100)
STEPS = (1, 2)
PARTS = ("boxes", "oval", "ends", "resnet_2b", "resnet_4b")
#: The networks whose pictures should get labels at both ends, and of how many pictures.
ENDS = (
    ("oval-base", "oval21/nets/cifar_base_kw.onnx", "oval21"),
    ("resnet-2b", "cifar10_resnet/onnx/resnet_2b.onnx", "cifar10"),
)
PICTURES, BOTH = 30, ["sat", "unsat"]
SEED_TABLE = {
    ("resnet_2b", 1): ("69.25%", "62.24%", "57.16%"),
    ("resnet_2b", 2): ("69.25%", "54.82%", "26.88%"),
    ("resnet_4b", 1): ("77.20%", "69.75%", "23.28%"),
    ("resnet_4b", 2): ("77.20%", "61.41%", "0.24%"),
}


class Journal:
    """Lines of JSON by key; what is there is not done again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines: dict[str, Any] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self.lines[entry["key"]] = entry

    def once(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The entry, made and kept where it is not there."""
        if key not in self.lines:
            start = time.process_time()
            entry = {"key": key, **make()}
            entry["cpu_seconds"] = round(time.process_time() - start, 2)
            append_line(self._path, json.dumps(entry))
            self.lines[key] = entry
            print(json.dumps(entry), flush=True)
        found: dict[str, Any] = self.lines[key]
        return found


def boxes(folder: Path, journal: Journal) -> None:
    """Whether the box of each recovered picture is the published one, bit for bit."""
    for pattern, normalisation in (("oval21/vnnlib/*", "oval21"), ("cifar10_resnet/*/*/*", "cifar10")):
        for path in sorted(folder.glob(pattern)):

            def compare(path: Path = path, name: str = normalisation) -> dict[str, Any]:
                found = recover(path, SHAPE, KNOWN[name])
                return {"agrees": found.agrees, "eight_bit": found.is_eight_bit}

            journal.once(f"box {path.parent.name}/{path.name}", compare)


def oval(folder: Path, journal: Journal) -> None:
    """The bracket of each published picture, and what decides the published radius."""
    models: dict[str, Classifier] = {}
    for path in sorted(folder.glob("oval21/vnnlib/*")):
        name = path.name.split("-")[0]
        if name not in models:
            models[name] = read_classifier(folder / "oval21" / "nets" / f"{name}.onnx", KNOWN["oval21"])

        def search(path: Path = path, model: Classifier = models[name]) -> dict[str, Any]:
            found = recover(path, SHAPE, KNOWN["oval21"])
            one = DataSet("cifar10", found.record[None], np.array([found.label]))
            effort = Effort()
            (broken,) = broken_radii(model, one, effort, np.random.default_rng(0))
            largest = effort.largest if broken is None else broken[0]
            proven, certificate = proven_radius(model, one, largest, effort)
            decided = ""
            if prove_at(model, one, found.radius, steps=effort.slope_steps) is not None:
                decided = "unsat"
            elif broken is not None and _breaks(model, one, found.radius, broken[1]):
                decided = "sat"
            return {
                "published": 255 * found.radius,
                "proven": 255 * proven if certificate is not None else None,
                "broken": None if broken is None else 255 * broken[0],
                "decided": decided,
            }

        journal.once(f"oval {path.name.removesuffix('.gz').removesuffix('.vnnlib')}", search)


def _breaks(model: Classifier, one: DataSet, radius: float, witness: Any) -> bool:
    """Whether the witness lies in the published box, where it violates exactly."""
    from fractions import Fraction

    from dokimos.suites.vnnlib.violation import violation_at

    point = tuple(map(Fraction, witness.tolist()))
    return violation_at(model.network, asked_at(model, one, radius), point).violates is True


def ends(folder: Path, journal: Journal, work: Path) -> None:
    """For the first correctly classified pictures, whether each gets a proven label at both ends."""
    data = load_data("cifar10").chosen(list(range(2 * PICTURES)))
    for name, path, normalisation in ENDS:
        model = read_classifier(folder / path, KNOWN[normalisation])
        for place in np.flatnonzero(model.is_right(data))[:PICTURES].tolist():

            def twins(name: str = name, model: Classifier = model, place: int = place) -> dict[str, Any]:
                wishes = Wishes(style=Style.OVAL, count=1, twins=True)
                try:
                    out = work / name / str(place)
                    suite, (found,) = make_suite(model, data.chosen([place]), out, wishes)
                except InputError as error:
                    if "gives an instance" not in str(error):
                        raise
                    return {"both": False, "reason": str(error)}
                sizes = [each.stat().st_size for each in suite.folder.glob("truth/*.json")]
                both = sorted(label for _, label in found.instances) == BOTH
                return {"both": both, "reason": found.reason, "bytes": max(sizes)}

            journal.once(f"ends {name} {place}", twins)


def accuracy(folder: Path, journal: Journal, name: str, images: int) -> None:
    """Clean, PGD and bound-verified accuracy on the first test pictures of CIFAR-10; attacks come first."""
    data = load_data("cifar10").chosen(list(range(images)))
    model = read_classifier(folder / "cifar10_resnet" / "onnx" / f"{name}.onnx", KNOWN["cifar10"])
    resisted = {}
    for step in STEPS:

        def attack(step: int = step) -> dict[str, Any]:
            resists = resisting(model, data, step / 255, BUDGET, np.random.default_rng(0))
            return {"right": int(model.is_right(data).sum()), "resists": np.flatnonzero(resists).tolist()}

        resisted[step] = journal.once(f"accuracy {name} {step}/255 of {images}", attack)["resists"]
    for place in range(images):
        for step in STEPS:
            if place not in resisted[step]:
                break

            def bound(step: int = step, place: int = place) -> dict[str, Any]:
                return {"proven": prove_at(model, data.chosen([place]), step / 255, steps=0) is not None}

            if not journal.once(f"verified {name} {step}/255 {place}", bound)["proven"]:
                break


def page(journal: Journal) -> str:
    """The page of what is there."""
    return (
        "\n".join(
            [
                *_head(),
                *_boxes_part(journal),
                *_oval_part(journal),
                *_ends_part(journal),
                *_accuracy_part(journal),
            ]
        )
        + "\n"
    )


def _head() -> Iterator[str]:
    yield "# Published networks, their properties and radii"
    yield ""
    yield "Made by `dokimos-studies published-properties FOLDER`, where FOLDER has `oval21` and"
    yield "`cifar10_resnet` of VNN-COMP 2021; CPU-seconds are those of one core."
    yield ""


def _boxes_part(journal: Journal) -> Iterator[str]:
    found = [entry for key, entry in journal.lines.items() if key.startswith("box ")]
    agree = sum(entry["agrees"] for entry in found)
    yield "## Boxes"
    yield ""
    yield "The picture of each published box is recovered, and its box made again:"
    yield f"{agree} of {len(found)} boxes are the published ones, bit for bit in float32"
    yield "(pixel ± ε, clip, then normalise)."
    yield ""


def _oval_part(journal: Journal) -> Iterator[str]:
    rows = {
        key.removeprefix("oval "): entry for key, entry in journal.lines.items() if key.startswith("oval ")
    }
    decided = sum(bool(entry["decided"]) for entry in rows.values())
    between = sum(not entry["decided"] and _holds(entry) for entry in rows.values())
    slowest = max((entry["cpu_seconds"] for entry in rows.values()), default=0)
    yield "## OVAL21: the published radius in our brackets"
    yield ""
    yield "Radii times 255. *Proven*: the largest radius at which linear bounds with slopes prove that"
    yield "the class stays. *Broken*: the smallest at which MI-FGSM found another class. Both searches go"
    yield "up to 16 and are exact to 0.1, within a budget of 60 CPU-seconds for each picture."
    yield f"Of {len(rows)} published radii, {between} lie in our bracket, {decided} are decided by it; the"
    yield f"slowest picture took {slowest:.0f} CPU-seconds for both sides."
    yield ""
    yield "| instance | proven | published | broken | decided | CPU-s |"
    yield "|---|---:|---:|---:|---|---:|"
    for name, entry in sorted(rows.items()):
        short = re.sub(r"-eps.*", "", name)
        numbers = (entry["proven"], entry["published"], entry["broken"])
        shown = " | ".join("-" if number is None else f"{number:.3f}" for number in numbers)
        yield f"| {short} | {shown} | {entry['decided'] or 'between'} | {entry['cpu_seconds']:.0f} |"
    yield ""


def _holds(entry: dict[str, Any]) -> bool:
    low, high = entry["proven"], entry["broken"]
    return (low is None or low <= entry["published"]) and (high is None or entry["published"] <= high)


def _ends_part(journal: Journal) -> Iterator[str]:
    yield "## Labels at both ends"
    yield ""
    yield f"Of the first {PICTURES} test pictures of CIFAR-10 that a network classifies correctly, so many"
    yield "get an `unsat` instance with a certificate and a `sat` one with a witness, as `properties oval"
    yield "--twins` makes them."
    yield ""
    yield "| network | pictures | both labels | largest truth file | CPU-s for each | without |"
    yield "|---|---:|---:|---:|---:|---|"
    for name, _, _ in ENDS:
        found = {key: each for key, each in journal.lines.items() if key.startswith(f"ends {name} ")}
        both = [each for each in found.values() if each["both"]]
        why = [
            f"picture {key.split()[-1]}: {_shortened(each['reason'])}"
            for key, each in found.items()
            if not each["both"]
        ]
        size = max((each["bytes"] for each in both), default=0) / 1000
        seconds = sum(each["cpu_seconds"] for each in found.values()) / max(1, len(found))
        cells = f"{len(found)} | {len(both)} | {size:.0f} kB | {seconds:.0f}"
        yield f"| {name} | {cells} | {'; '.join(why) or 'none'} |"
    yield ""


def _shortened(reason: str) -> str:
    """Why a record gives no instance, without what to do about it."""
    return reason.partition("gives an instance: ")[2].partition(";")[0] or reason


def _accuracy_part(journal: Journal) -> Iterator[str]:
    yield "## Accuracy of ResNet-2B and ResNet-4B"
    yield ""
    yield "On the first test pictures of CIFAR-10, with 95-percent intervals; in italics what the"
    yield "benchmark's authors state. PGD has 100 steps and 5 restarts; *verified* is by linear bounds with"
    yield "the usual slopes, sound in float32, tried where PGD finds nothing, and at 2/255 where 1/255 is"
    yield "proven."
    yield ""
    yield "| network | ε | pictures | clean | PGD | verified |"
    yield "|---|---|---:|---|---|---|"
    for key, entry in sorted(journal.lines.items()):
        match = re.fullmatch(r"accuracy (\w+) (\d)/255 of (\d+)", key)
        if match is None:
            continue
        name, step, count = match[1], int(match[2]), int(match[3])
        proven, bounded = _verified(journal, name, step, count)
        verified = str(Share(proven, bounded)) if bounded else "not run"
        if 0 < bounded < count:
            verified += f" of the first {bounded}"
        shares = [str(Share(entry["right"], count)), str(Share(len(entry["resists"]), count)), verified]
        theirs = SEED_TABLE[name, step]
        cells = " | ".join(f"{own}; *{their}*" for own, their in zip(shares, theirs, strict=True))
        yield f"| {name} | {step}/255 | {count} | {cells} |"
    yield from _unfinished(journal)


def _unfinished(journal: Journal) -> Iterator[str]:
    """What the rows that are not finished would cost."""
    for name in ("resnet_2b", "resnet_4b"):
        counts = [
            int(key.rpartition(" ")[2])
            for key in journal.lines
            if key.startswith(f"accuracy {name} 2/255 of ")
        ]
        costs = [
            entry["cpu_seconds"]
            for key, entry in journal.lines.items()
            if key.startswith(f"verified {name} ")
        ]
        if costs and counts and _verified(journal, name, 2, max(counts))[1] < max(counts):
            yield ""
            each = f"{sum(costs) / len(costs):.0f} CPU-seconds"
            yield f"The bounds of {name} were stopped: they take {each} for each picture and radius. The"
            yield "same command continues them."


def _verified(journal: Journal, name: str, step: int, count: int) -> tuple[int, int]:
    """How many of the first pictures are proven at a radius, and how many first pictures are decided."""
    resists = {
        each: set(journal.lines[f"accuracy {name} {each}/255 of {count}"]["resists"])
        for each in STEPS
        if each <= step
    }
    proven = 0
    for place in range(count):
        for each, resisting_places in resists.items():
            if place not in resisting_places:
                break
            entry = journal.lines.get(f"verified {name} {each}/255 {place}")
            if entry is None:
                return proven, place
            if not entry["proven"]:
                break
        else:
            proven += 1
    return proven, count


def main() -> None:
    """Read the arguments, do what is missing, write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--work", type=Path, default=Path("published-properties"))
    parser.add_argument("--only", choices=PARTS, action="append")
    parser.add_argument("--only-page", action="store_true")
    given = parser.parse_args()
    if not given.folder.is_dir():
        raise InputError(f"{given.folder}: there is no such folder.")
    given.work.mkdir(parents=True, exist_ok=True)
    journal = Journal(given.work / "done.jsonl")
    for part in () if given.only_page else given.only or PARTS:
        if part == "boxes":
            boxes(given.folder, journal)
        elif part == "oval":
            oval(given.folder, journal)
        elif part == "ends":
            ends(given.folder, journal, given.work)
        else:
            accuracy(given.folder, journal, part, given.images)
    if not given.only:
        write_whole(PAGE, page(journal), what="the page")
