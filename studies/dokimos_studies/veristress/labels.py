"""The published labels, judged: `dokimos-studies labels SUITE FACTS [--seconds 60] --out PAGE`.

SUITE has the published networks and properties (dokimos-studies networks makes it), FACTS what was
published about them (see published.py). All are meant to be robust. Each label is *proven*, *refuted* by a
counterexample, or *open*: first by the proof of the family, then by interval bounds, then by a search of
`--seconds` as in `dokimos label`. What the checker accepts is kept in SUITE/truth and not looked for again,
so the command continues where it stopped; `dokimos check SUITE` proves it again. With `--seconds 0` nothing
is looked for: the page is written from what is kept. `--only FAMILY` looks for labels of one family.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.checker.lemmas.constraints import box_floats
from dokimos.checker.lemmas.piecewise_linear import piecewise_linear
from dokimos.checker.proofs.polynomials import enclosed, power_sum
from dokimos.constructions.base import by_slopes
from dokimos.core.errors import InputError, InvalidProof
from dokimos.core.files import write_whole
from dokimos.engine.direct import by_intervals
from dokimos.engine.label import find_label
from dokimos.engine.outcome import NoProof, accepted_truth
from dokimos.engine.polynomial_plans import plan_whole_box
from dokimos.engine.runtimes.sessions import replay
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.interval import enclose
from dokimos.reports.exports import markdown_table
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.folder import read_suite
from dokimos.suites.instance import Certificate, Label, Semantics, Truth
from dokimos.suites.suite_files import dump_truth
from dokimos.suites.vnnlib.model import Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos_studies.veristress.published import (
    FAMILIES,
    ROBUST,
    parameters,
    parser_for,
    profiles,
    results,
    show,
    table,
)

#: A margin at the centre is the published one if it differs by no more than this share: float32 rounds.
SAME = 1e-3
#: Boxes that a proof of a polynomial network may take; the checker takes some more.
MOST_BOXES = 4000
#: The families whose published interval bounds are right: there is no Pow and no product of two variables.
WITH_RELUS = ("exclusive-pairs", "exact-radius", "convex-corners", "contractive-cnn", "paired-bias")
WORDS = {Label.UNSAT: "proven", Label.SAT: "refuted", None: "open"}


@dataclass(frozen=True)
class Measured:
    """What shows that a network is the published one.

    `centre` is how far the class that must win leads at the centre of the box, `intervals` how far it leads
    everywhere by interval bounds; None if that is not known.
    """

    centre: float | None
    intervals: float | None = None


@dataclass(frozen=True)
class Judged:
    """One published label."""

    name: str
    family: str
    truth: Truth | None
    here: Measured
    published: Measured
    answers: Counter[str]
    is_other_version: bool

    @property
    def word(self) -> str:
        """What has become of the label."""
        return WORDS[self.truth.label if self.truth else None]

    def margin(self, semantics: Semantics) -> str:
        """The proven margin; – if there is none."""
        claim = self.truth.claims.get(semantics) if self.truth else None
        return "–" if claim is None or claim.margin is None else f"{float(claim.margin):.3g}"


def certificates(
    family: str, network: Network, asked: Property, given: dict[str, Any]
) -> Iterator[Certificate]:
    """The proof of the family where it applies to the published network as it is; then interval bounds."""
    if family == "exclusive-pairs":
        pairs, relus = given["num_pairs"], len(piecewise_linear(network).relus)
        yield by_slopes(asked, [1] * 2 * pairs + [0.5] * pairs + [1] * (relus - 3 * pairs))
    elif family == "convex-corners":
        yield Certificate("convex-corners", {})
    elif family == "paired-bias":
        pairs = given["num_pairs"]
        last = [node.output for node in network.nodes if node.op == "Conv"][-1]
        pairing = [[i, i + pairs] for i in range(pairs)]
        yield Certificate("ordered-pairs", {"convolution": last, "pairs": pairing})
    elif family == "polynomial":
        ((box, (constraint,)),) = asked.questions()
        terms = enclosed(power_sum(network, constraint))
        target = 1e-9 * abs(given["centre"])
        plan = plan_whole_box(terms, *box_floats(box), target=target, most_boxes=MOST_BOXES)
        yield Certificate("pinning", plan)
    yield by_intervals(questions=len(asked.questions()))


def is_by_intervals(truth: Truth) -> bool:
    """Whether each part of the box is bounded as a box of its own."""
    questions = truth.certificate.data.get("questions", ())
    return any(question.get("own", False) for question in questions)


def settle(entry: SuiteEntry, given: dict[str, Any], seconds: float) -> Truth | None:
    """The label of one instance, proven from the files; None if it stays open."""
    instance, name = entry.read_instance(), entry.name
    network = read_onnx(instance.network_file, name=name)
    asked = read_vnnlib(instance.property_file, file=name)
    try:
        for certificate in certificates(entry.family, network, asked, given):
            try:
                return accepted_truth(instance, certificate, Label.UNSAT)
            except InvalidProof as error:
                print(f"{name}: {certificate.kind}: {error}", file=sys.stderr)
    except NoProof as error:
        print(f"{name}: {error}", file=sys.stderr)
    return find_label(instance, seconds=seconds).truth


def measured(entry: SuiteEntry, winner: int) -> Measured:
    """The lead of the class that must win, in float32 at the centre, and by interval bounds."""
    instance = entry.read_instance()
    network = read_onnx(instance.network_file, name=entry.name)
    (box, _), *_ = read_vnnlib(instance.property_file, file=entry.name).questions()
    point = np.array([[float(x) for x in box.centre]], dtype=np.float32)
    scores = np.asarray(replay(instance.network_file, point)[0], dtype=np.float64)
    centre = float(scores[winner] - np.delete(scores, winner).max())
    if entry.family not in WITH_RELUS:
        return Measured(centre)
    outputs = enclose(network, box.lower, box.upper)[network.output]
    lower, upper = (np.asarray(ends, dtype=np.float64).ravel() for ends in (outputs.lower, outputs.upper))
    return Measured(centre, float(lower[winner] - np.delete(upper, winner).max()))


def is_same(ours: float | None, theirs: float | None) -> bool:
    """Whether a number is the published one."""
    return ours is not None and theirs is not None and abs(ours - theirs) <= SAME * abs(theirs)


def settled(entry: SuiteEntry, given: dict[str, Any], seconds: float) -> Truth | None:
    """The label that is kept; or one that is found, and kept."""
    truth = entry.read_truth()
    if truth is not None or not seconds:
        return truth
    truth = settle(entry, given, seconds)
    if truth is not None:
        origin = {"family": entry.family, "labelled_by": truth.certificate.kind}
        write_whole(entry.truth_path, dump_truth(truth, origin=origin))
    print(f"{entry.name}: {WORDS[truth.label if truth else None]}", file=sys.stderr, flush=True)
    return truth


def by_family(rows: Sequence[Judged]) -> list[str]:
    """Labels by constructor."""
    cells = []
    for family in dict.fromkeys(row.family for row in rows):
        mine = [row for row in rows if row.family == family]
        words = Counter(row.word for row in mine)
        kinds = Counter(row.truth.certificate.kind for row in mine if row.truth)
        single = sum(row.margin(Semantics.FLOAT32) != "–" for row in mine if row.word == "proven")
        cells.append(
            [
                family,
                str(len(mine)),
                *(str(words[word]) for word in WORDS.values()),
                str(single),
                _alike([(row.here.centre, row.published.centre) for row in mine]),
                _alike([(row.here.intervals, row.published.intervals) for row in mine]),
                ", ".join(f"`{kind}` {count}" for kind, count in kinds.items()),
            ]
        )
    heads = [
        "constructor",
        "instances",
        *WORDS.values(),
        "float32, too",
        "same centre",
        "same bounds",
        "proof",
    ]
    return markdown_table(heads, cells, numbers=False)


def _alike(pairs: Sequence[tuple[float | None, float | None]]) -> str:
    known = [(ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None]
    return f"{sum(is_same(*pair) for pair in known)} of {len(known)}" if known else "–"


def every_label(rows: Sequence[Judged]) -> list[str]:
    """One line for each label."""
    cells = [
        [
            row.name,
            row.family,
            *(_told(number) for number in (row.here.centre, row.published.centre)),
            *(_told(number) for number in (row.here.intervals, row.published.intervals)),
            f"**{row.word}**" if row.truth else row.word,
            f"`{row.truth.certificate.kind}`" if row.truth else "",
            row.margin(Semantics.REAL) if row.word == "proven" else "",
            row.margin(Semantics.FLOAT32) if row.word == "proven" else "",
            ", ".join(f"{status} {count}" for status, count in sorted(row.answers.items())),
        ]
        for row in rows
    ]
    heads = ["instance", "constructor", "centre", "published", "intervals", "published", "label", "proof"]
    return markdown_table([*heads, "margin", "in float32", "five tools"], cells, numbers=False)


def _told(number: float | None) -> str:
    return "–" if number is None else f"{number:.6g}"


def page(rows: Sequence[Judged], total: int) -> list[str]:
    """The page, in Markdown."""
    words = Counter(row.word for row in rows)
    late = Counter(
        status
        for row in rows
        if row.word == "proven"
        for status, n in row.answers.items()
        for _ in range(n)
    )
    unsolved = sum(row.word == "proven" and not row.answers["UNSAT"] for row in rows)
    plain = Counter(row.family for row in rows if row.truth and is_by_intervals(row.truth))
    refuted = ", ".join(f"`{row.name}`" for row in rows if row.word == "refuted")
    return [
        "# The published labels, judged",
        "",
        "VeriStress-GT (arXiv 2605.17153) publishes the properties, seeds and parameters of 225 instances,",
        f"all meant to be robust. {len(rows)} of the {total} networks are rebuilt. Each label is proven on",
        "the rebuilt network and the published property, refuted by a counterexample, or open:",
        ", ".join(f"**{words[word]} {word}**" for word in WORDS.values()) + ".",
        "",
        "```",
        "dokimos-studies networks PUBLISHED FACTS --rebuilt REBUILT --out published",
        "dokimos-studies labels published FACTS --seconds 300 \\",
        "  --out studies/results/published-labels.md",
        "dokimos check published",
        "```",
        "",
        "Polynomial networks and those with an exact radius are rebuilt by our own script, from their",
        "seeds. The other networks were written by the published constructors, run beside the project with",
        "their published parameters (torch 2.13); nothing of that code is part of Dokimos. The properties",
        "are the published files themselves. Two published numbers show that the networks are the",
        f"published ones, to a share of {SAME:g}: *same centre*, the lead of the class that must win at",
        "the centre of the box; and *same bounds*, its lead by interval bounds, which every weight enters",
        "(compared where there are only affine operators and ReLUs: the published bounds of the others",
        "are not bounds). Weights may still differ in their last bits, which may matter where a margin is",
        "below 1e-6; the proofs are about the files as rebuilt here.",
        "",
        *by_family(rows),
        "",
        "*float32, too*: proven for every order of summation in float32, not only over the reals.",
        "",
        "What the five tools answered on what is proven here, 600 seconds each: "
        + ", ".join(f"{status} {count}" for status, count in sorted(late.items()))
        + f"; no tool answered UNSAT on {unsolved} of them.",
        "",
        f"Interval bounds on the whole box, without a single split, prove {plain.total()} of them: "
        + ", ".join(f"{family} {count}" for family, count in plain.items())
        + ".",
        *(["", f"Refuted: {refuted}."] if refuted else []),
        *_versions([row.name for row in rows if row.is_other_version]),
        "",
        "## Every label",
        "",
        *every_label(rows),
    ]


def _versions(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [
        "",
        f"The properties of {', '.join(f'`{name}`' for name in names)} were published in two versions: the",
        "files here do not have the hashes that the table of combinations has, so the five tools may have",
        "answered another question. On `milp26` NeuralSAT's log has a counterexample outside the box that",
        "is judged here.",
    ]


def main() -> int:
    """Judge every label and write the page."""
    parser = parser_for(__doc__)
    parser.add_argument("suite", type=Path)
    parser.add_argument("facts", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", action="append", metavar="FAMILY", choices=list(FAMILIES.values()))
    given = parser.parse_args()
    if not 0 <= given.seconds < math.inf:
        parser.error("--seconds must be a number of at least 0")
    rows_of = {row["instance"]: row for row in table(given.facts, "combinations")}
    known = {name: row for (benchmark, name), row in profiles(given.facts).items() if benchmark in ROBUST}
    answers: dict[str, Counter[str]] = {}
    for run in results(given.facts, *ROBUST):
        answers.setdefault(run["instance"], Counter())[run["status"]] += 1
    rows = []
    entries = read_suite(given.suite).entries
    for entry in entries:
        if entry.name not in known or entry.name not in rows_of:
            raise InputError(
                f"{given.suite}: {entry.name} is not in the published tables of {given.facts}; make the "
                "suite with dokimos-studies networks."
            )
    for entry in entries:
        profile, parameter = known[entry.name], parameters(rows_of[entry.name])
        here = measured(entry, int(profile["true_class"]))
        published = Measured(float(profile["margin_at_x0"]), float(profile["ibp_margin_lb"]))
        seconds = given.seconds if not given.only or entry.family in given.only else 0.0
        truth = settled(entry, {**parameter, "centre": here.centre}, seconds)
        other = entry.property_sha256 != rows_of[entry.name]["vnnlib_sha256"]
        rows.append(Judged(entry.name, entry.family, truth, here, published, answers[entry.name], other))
    families = list(FAMILIES.values())
    order = {name: number for number, name in enumerate(rows_of)}
    rows.sort(key=lambda row: (families.index(row.family), order[row.name]))
    show(page(rows, len(rows_of)), given.out)
    return 0
