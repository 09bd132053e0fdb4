"""The tables of docs/law-results.md, in Markdown.

`python scripts/law_tables.py global` decides every question of the tabular studies for all records;
`… rows [ROWS] [TOLERANCE]` the six questions of COMPAS around the first rows of the test set (all of them,
1% unless given); `… repair [SEEDS]` repairs the networks, and decides the laws before and after;
`… images [ROWS] [NEAR]` decides the law on blurred pictures for any strength of the blur on the rows of
MNIST's test set (all of them unless given), and within one step of 255 around NEAR rows (200).
"""

from __future__ import annotations

import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dokimos
from dokimos.api.law_proofs import VerifiedLaw
from dokimos.checker.lemmas.relu_layers import ReluLayer, relu_layers
from dokimos.laws.domain.lookup import load_domain
from dokimos.laws.models.lookup import as_domain_model
from dokimos.laws.proving.picture_zones import possible_decisions
from dokimos.laws.proving.results import LawAnswer, VerifySettings
from dokimos.laws.proving.segments import SegmentReach
from dokimos.laws.repair.repairing import RepairSettings
from dokimos.laws.reporting.repair_table import repair_table
from dokimos.laws.studies.domains import mnist
from dokimos.laws.studies.paper import published as in_the_paper
from dokimos.networks.reading.onnx_file import read_onnx

LIBRARY = Path(dokimos.__file__).parent / "laws" / "studies" / "library"
#: The two laws of each question: one asks it from the lower end, the other from the upper.
QUESTIONS = {
    "compas": ("felony", "misdemeanour", "others", "priors", "is_recid", "is_violent_recid"),
    "german_credit": ("credit_amount", "installment_rate", "credit_history", "employment", "job"),
}
#: The questions whose feature is a number: these can be repaired.
NUMERIC = {"compas": QUESTIONS["compas"], "german_credit": QUESTIONS["german_credit"][:2]}
ROWS = 10_000


def files(domain: str, question: str) -> list[Path]:
    """The laws that ask a question, the one from the lower end first."""
    found = [path for path in (LIBRARY / domain).glob("*.law") if path.stem.rsplit("_", 1)[0] == question]
    return sorted(found, key=lambda path: path.stem.endswith(("_dec", "_unset")))


def decide_everywhere() -> None:
    """Every distinct question, for a network and for a tree."""
    print("| question | model | laws | in the paper | answer | decided by | seconds | case, or proof |")
    print("|---|---|---|---|---|---|---|---|")
    for domain, questions in QUESTIONS.items():
        for model in ("network", "tree"):
            for question in questions:
                laws = files(domain, question)
                verified = dokimos.verify_law(laws, model=model, domain=domain)
                print(_global_line(domain, model, question, laws, verified), flush=True)


def _global_line(
    domain: str, model: str, question: str, laws: list[Path], verified: tuple[VerifiedLaw, ...]
) -> str:
    paper = in_the_paper(domain, model)
    unique = {} if paper is None else paper.unique_by_law
    published = ", ".join(
        f"{unique[law.stem]:g} found" if unique.get(law.stem) else "none found" for law in laws
    )
    found = [one.decision for one in verified]
    first = found[0]
    if first.answer is LawAnswer.VIOLATED:
        shown = "" if first.violation is None else first.violation.words
    elif first.answer is LawAnswer.PROVEN:
        zones = [0 if each.cover is None else each.cover.leaves for each in found]
        shown = f"{' and '.join(map(str, zones))} zones, {first.semantics}"
    else:
        shown = f"{100 * first.share:.3g} % left {first.reason}"
    cells = (
        f"{domain}: {question}",
        model,
        ", ".join(law.stem.rsplit("_", 1)[1] for law in laws),
        published,
        " and ".join(dict.fromkeys(each.answer.value for each in found)),
        "; ".join(dict.fromkeys(each.step for each in found)),
        f"{sum(each.seconds for each in found):.1f}",
        shown,
    )
    return "| " + " | ".join(cells) + " |"


def decide_around_rows(rows: int, tolerance: Fraction) -> None:
    """The six questions of COMPAS around rows of its test set."""
    print(
        "| question | rows | proven | of these in float32 too | violated | open | no case | CPU-s a row |"
    )
    print("|---|---|---|---|---|---|---|---|")
    total: Counter[str] = Counter()
    for question in QUESTIONS["compas"]:
        (one,) = dokimos.verify_law_rows(
            files("compas", question)[0],
            rows=rows,
            tolerances=[tolerance],
            model="network",
            domain="compas",
            settings=VerifySettings(seconds=10.0),
        )
        decision = one.decision
        counts = Counter(
            rows=len(decision.rows),
            proven=decision.count(LawAnswer.PROVEN),
            single=sum(each.in_float32 and not each.is_empty for each in decision.rows),
            violated=decision.count(LawAnswer.VIOLATED),
            open=decision.count(LawAnswer.OPEN),
            empty=decision.empty,
        )
        print(_rows_line(question, counts, decision.seconds), flush=True)
        total += counts
        total["seconds"] += round(decision.seconds * 1000)
    print(_rows_line("all", total, total["seconds"] / 1000))
    decided = 100 * (1 - total["open"] / total["rows"])
    print(f"\nDecided: {decided:.2f} % of {total['rows']:,}.")


def _rows_line(name: str, counts: Counter[str], seconds: float) -> str:
    cells = [f"{counts[each]:,}" for each in ("rows", "proven", "single", "violated", "open", "empty")]
    return f"| {name} | " + " | ".join(cells) + f" | {seconds / max(counts['rows'], 1):.3f} |"


def repair(seeds: int) -> None:
    """The networks repaired by certified slopes, with all laws of the numeric questions at once."""
    for domain, questions in NUMERIC.items():
        laws = [files(domain, question)[0] for question in questions]
        made = dokimos.repair_law(
            laws,
            model="network",
            domain=domain,
            settings=RepairSettings(verify=VerifySettings(seconds=20.0)),
            seeds=range(seeds),
        )
        print(f"{domain}: {', '.join(questions)}\n\n{repair_table(made, 'certified')}", flush=True)
        print("| question | before | after, seeds proven |\n|---|---|---|")
        for number, question in enumerate(questions):
            before = made[0].before.answers[number].value
            after = sum(each.after.answers[number] is LawAnswer.PROVEN for each in made)
            print(f"| {question} | {before} | {after} of {len(made)} |")
        print(flush=True)


def decide_pictures(rows: int, near: int) -> None:
    """The law on blur: who knows the digit in a blurred picture knows it in the picture."""
    domain = load_domain("mnist", allow_code=True)
    model = as_domain_model(mnist.model(), domain)
    assert isinstance(model.made_of, bytes)
    layers = relu_layers(read_onnx(model.made_of, name=model.name))
    pictures, labels = np.asarray(mnist.inputs()), np.asarray(mnist.labels())
    reach = SegmentReach(layers)
    counts: Counter[str] = Counter()
    for picture, label in zip(pictures[:rows], labels[:rows].tolist(), strict=True):
        start, end = [Fraction(int(each)) for each in picture], mnist.blurred(picture)
        found = reach.decisions(start, end)
        counts["steady" if len({each.decision for each in found}) == 1 else "changing"] += 1
        bad = [each for each in found if each.decision == label and found[0].decision != label]
        counts["violated" if bad else "proven"] += 1
        if bad:
            widest = max(bad, key=lambda each: each.high - each.low)
            at = (widest.low + widest.high) / 2
            mixed = [float(a + at * (b - a)) for a, b in zip(start, end, strict=True)]
            counts["run again"] += int(model.predict(np.array([mixed], np.float32))[0]) == label
    print(
        "| set | rows | proven | violated | open | violated in onnxruntime too |\n|---|---|---|---|---|---|"
    )
    print(
        f"| any strength from 0 to 1 | {sum(counts[k] for k in ('proven', 'violated')):,} "
        f"| {counts['proven']:,} | {counts['violated']:,} | 0 | {counts['run again']:,} |",
        flush=True,
    )
    _decide_near(layers, pictures[:near], labels[:near])
    print(
        f"\nOne decision at all strengths: {counts['steady']:,} of "
        f"{counts['steady'] + counts['changing']:,} rows."
    )


def _decide_near(
    layers: tuple[ReluLayer, ...], pictures: NDArray[np.int16], labels: NDArray[np.int64]
) -> None:
    """All pictures within one step of 255 of a row, pixel by pixel, and what the blur makes of them."""
    low, high = np.maximum(pictures - 1, 0), np.minimum(pictures + 1, 255)
    sharp = possible_decisions(layers, low.astype(np.float64), high.astype(np.float64))
    ends = [np.array([[float(v) for v in mnist.blurred(each)] for each in end]) for end in (low, high)]
    soft = possible_decisions(layers, *ends)
    own = np.arange(len(labels))
    is_right = sharp.sum(axis=1) == sharp[own, labels]
    holds = is_right | ~soft[own, labels]
    reach, violated = SegmentReach(layers), 0
    for k in np.flatnonzero(~holds).tolist():
        start, end = [Fraction(int(each)) for each in pictures[k]], mnist.blurred(pictures[k])
        found = reach.decisions(start, end)
        violated += found[-1].decision == labels[k] != found[0].decision
    rest = len(labels) - int(holds.sum()) - violated
    print(f"| ± 1/255 around the row | {len(labels):,} | {int(holds.sum()):,} | {violated} | {rest} | |")


def main(arguments: list[str]) -> None:
    """Print the tables that are asked for."""
    match arguments:
        case ["global"]:
            decide_everywhere()
        case ["rows", *more]:
            rows = int(more[0]) if more else ROWS
            tolerance = Fraction(more[1].removesuffix("%")) / 100 if len(more) > 1 else Fraction(1, 100)
            decide_around_rows(rows, tolerance)
        case ["repair", *more]:
            repair(int(more[0]) if more else 5)
        case ["images", *more]:
            rows, near = (
                int(more[k]) if len(more) > k else default for k, default in enumerate((ROWS, 200))
            )
            decide_pictures(rows, near)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
