"""The tables of studies/results/law-results.md, in Markdown.

`dokimos-studies law-tables global` decides every question of the tabular studies for all records;
`… rows [ROWS] [TOLERANCE] [FOLDER]` the six questions of COMPAS around the first rows of the test set (all
of them, 1% unless given); FOLDER keeps the counts of every 64 rows for when the run is stopped and goes on;
`… repair [SEEDS] [WAY]` repairs the networks, certified unless another way is given, and decides the laws
before and after.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np

import dokimos
from dokimos.api.law_proofs import VerifiedLaw
from dokimos.core.errors import InputError
from dokimos.core.files import write_whole
from dokimos.laws.domain.data_frames import with_table
from dokimos.laws.domain.definition import load_domain
from dokimos.laws.language.parser import read_law
from dokimos.laws.language.syntax import LIBRARY
from dokimos.laws.models.lookup import load_model
from dokimos.laws.proving.results import LawAnswer, RowsDecision, VerifySettings
from dokimos.laws.proving.row_zones import Tolerance
from dokimos.laws.proving.verifying import verify_rows
from dokimos.laws.repair.repair import RepairSettings
from dokimos.laws.repair.repair_task import RepairWay
from dokimos.laws.reporting.terminal import repair_table
from dokimos_studies.laws.paper import published as in_the_paper

T = TypeVar("T")
#: The two laws of each question: one asks it from the lower end, the other from the upper.
QUESTIONS = {
    "compas": ("felony", "misdemeanour", "others", "priors", "is_recid", "is_violent_recid"),
    "german_credit": ("credit_amount", "installment_rate", "credit_history", "employment", "job"),
}
#: The questions whose feature is a number: these can be repaired.
NUMERIC = {"compas": QUESTIONS["compas"], "german_credit": QUESTIONS["german_credit"][:2]}
ROWS = 10_000
#: Rows that are counted together, and kept.
ROWS_AT_ONCE = 64


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


def decide_around_rows(rows: int, tolerance: Fraction, folder: Path | None) -> None:
    """The six questions of COMPAS around rows of its test set; `folder` keeps what was counted."""
    domain = with_table(load_domain("compas"))
    model = load_model("network", domain)
    data = np.asarray(domain.inputs() if domain.inputs else [])[:rows].tolist()
    totals = {question: Counter[str]() for question in QUESTIONS["compas"]}
    for start in range(0, len(data), ROWS_AT_ONCE):
        for question, total in totals.items():
            name = f"{question}-{float(tolerance):g}-{start}-{min(start + ROWS_AT_ONCE, len(data))}.json"
            kept = None if folder is None else folder / name
            if kept is not None and kept.exists():
                total.update(json.loads(kept.read_text()))
                continue
            decision = verify_rows(
                read_law(files("compas", question)[0]),
                data[start : start + ROWS_AT_ONCE],
                Tolerance(tolerance),
                model=model,
                domain=domain,
                settings=VerifySettings(seconds=10.0),
            )
            counts = _counted(decision)
            total.update(counts)
            if kept is not None:
                write_whole(kept, json.dumps(counts))
    print(
        "| question | rows | proven | of these in float32 too | violated | open | no case | CPU-s a row |"
    )
    print("|---|---|---|---|---|---|---|---|")
    all_of_them = sum(totals.values(), Counter[str]())
    for question, total in (*totals.items(), ("all", all_of_them)):
        print(_rows_line(question, total), flush=True)
    decided = 100 * (1 - all_of_them["open"] / all_of_them["rows"])
    print(f"\nDecided: {decided:.2f} % of {all_of_them['rows']:,}.")


def _counted(decision: RowsDecision) -> Counter[str]:
    return Counter(
        rows=len(decision.rows),
        proven=decision.count(LawAnswer.PROVEN),
        single=sum(each.in_float32 and not each.is_empty for each in decision.rows),
        violated=decision.count(LawAnswer.VIOLATED),
        open=decision.count(LawAnswer.OPEN),
        empty=decision.empty,
        milliseconds=round(decision.seconds * 1000),
    )


def _rows_line(name: str, counts: Counter[str]) -> str:
    cells = [f"{counts[each]:,}" for each in ("rows", "proven", "single", "violated", "open", "empty")]
    seconds = counts["milliseconds"] / 1000 / max(counts["rows"], 1)
    return f"| {name} | " + " | ".join(cells) + f" | {seconds:.3f} |"


def repair(seeds: int, way: RepairWay) -> None:
    """The networks repaired in one way, with all laws of the numeric questions at once."""
    for domain, questions in NUMERIC.items():
        laws = [files(domain, question)[0] for question in questions]
        made = dokimos.repair_law(
            laws,
            model="network",
            domain=domain,
            settings=RepairSettings(way=way, verify=VerifySettings(seconds=20.0)),
            seeds=range(seeds),
        )
        print(f"{domain}: {', '.join(questions)}\n\n{repair_table(made)}", flush=True)
        print("| question | before | after, seeds proven |\n|---|---|---|")
        for number, question in enumerate(questions):
            before = made[0].before.answers[number].value
            after = sum(each.after.answers[number] is LawAnswer.PROVEN for each in made)
            print(f"| {question} | {before} | {after} of {len(made)} |")
        print(flush=True)


def main() -> None:
    """Print the tables that are asked for."""
    match sys.argv[1:]:
        case ["global"]:
            decide_everywhere()
        case ["rows", *more]:
            rows = _read(int, more, 0, ROWS)
            percent = _read(lambda text: Fraction(text.removesuffix("%")), more, 1, Fraction(1))
            decide_around_rows(rows, percent / 100, Path(more[2]) if len(more) > 2 else None)
        case ["repair", *more]:
            repair(_read(int, more, 0, 5), _read(RepairWay, more, 1, RepairWay("certified")))
        case ["-h" | "--help"]:
            print(__doc__)
        case _:
            raise InputError("Say global, rows or repair; see --help.")


def _read(kind: Callable[[str], T], words: Sequence[str], place: int, default: T) -> T:
    """The word at a place as what it is meant to be, or the default if there is none."""
    if len(words) <= place:
        return default
    try:
        return kind(words[place])
    except ValueError as error:
        raise InputError(f"{words[place]!r} cannot be read here; see --help.") from error
