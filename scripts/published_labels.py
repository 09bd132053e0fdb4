"""The labels of the published polynomial networks: `python scripts/published_labels.py FOLDER --out PAGE`.

FOLDER is `benchmarks/polynomial_stress_22` of a checkout of VeriStress-GT's public repository, which has no
networks: for each instance `instances/NAME/meta.json` (seed, parameters) and `instances/NAME/spec.vnnlib`.
A network is rebuilt from its seed by the recipe that the paper states: two affine layers with a power
between them, weights from a normal distribution divided by the root of the fan-in, biases a tenth of one.
`--facts FACTS` names a folder with `profiles.csv` and `results.csv`: then the margin at the centre is held
against the published one, and what the tools answered is shown.

Each label is *proven*, *refuted* by a counterexample, or *open*; what is proven went through the checker.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dokimos.attacks import ATTACKS
from dokimos.attacks.base import Budget
from dokimos.checker.lemmas.float_ends import box_floats
from dokimos.checker.lemmas.minorants import enclosed
from dokimos.checker.lemmas.power_sum import power_sum
from dokimos.core.errors import InvalidProof
from dokimos.core.files import write_whole
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import GraphBuilder
from dokimos.properties.reading import read_vnnlib
from dokimos.properties.violation import violation_at
from dokimos.provers.accepted_truth import accepted_truth
from dokimos.provers.base import NoProof
from dokimos.provers.polynomial_plans import plan_whole_box
from dokimos.reports.markdown import markdown_table
from dokimos.suites.instance import Certificate, Instance, Label, Semantics

#: A margin at the centre is the published one if it differs by no more than this share: float32 rounds.
SAME = 1e-3
#: Boxes that a proof may take; the checker takes some more.
MOST_BOXES = 4000


@dataclass(frozen=True)
class LabelRow:
    """One instance of the table."""

    name: str
    seed: int
    degree: int
    inputs: int
    width: int
    centre: float
    published: float | None
    label: str
    margin: str
    answers: str


def rebuild(seed: int, given: dict[str, Any]) -> bytes:
    """The network of a seed, rounded to float32 as the published files are."""
    if given["init_mode"] != "fanin":
        raise ValueError(f"init_mode {given['init_mode']!r} is not in the paper")
    inputs, width, degree = given["input_dim"], given["hidden_dim"], given["degree"]
    rng = np.random.default_rng(seed)
    first = rng.standard_normal((width, inputs)) * (given["weight_scale"] / np.sqrt(inputs))
    biases = rng.standard_normal(width) * (given["bias_scale"] * given["bias_base_scale"])
    last = rng.standard_normal((2, width)) * (given["output_weight_scale"] / np.sqrt(width))
    offsets = rng.standard_normal(2) * (given["output_bias_scale"] * given["output_bias_base_scale"])
    graph = GraphBuilder()
    hidden = graph.node("Gemm", "X", graph.constant(first), graph.constant(biases), transB=1)
    raised = graph.node("Pow", hidden, graph.constant(np.array(float(degree))))
    output = graph.node("Gemm", raised, graph.constant(last), graph.constant(offsets), transB=1)
    return graph.build({"X": ("float", [1, inputs])}, output, [1, 2], output_name="Y")


def judge(folder: Path, facts: dict[str, tuple[float | None, str]]) -> LabelRow:
    """Rebuild one instance and look for a proof, then for a counterexample."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    given, name = meta["args"], meta["id"]
    text = (folder / "spec.vnnlib").read_bytes()
    instance = Instance(name, rebuild(meta["seed"], given), text, 60.0)
    network, asked = read_onnx(instance.network_file, name=name), read_vnnlib(text, file=name)
    ((box, (constraint,)),) = asked.questions()
    terms = enclosed(power_sum(network, constraint))
    at_centre = violation_at(network, asked, box.centre).outputs
    centre = abs(float(at_centre.lower[0] - at_centre.lower[1]))
    label, margin = "open", ""
    try:
        data = plan_whole_box(terms, *box_floats(box), target=1e-9 * centre, most_boxes=MOST_BOXES)
        truth = accepted_truth(instance, Certificate("pinning", data), Label.UNSAT, None)
        real, single = (truth.claims[s].margin for s in (Semantics.REAL, Semantics.FLOAT32))
        label = "**proven**"
        margin = f"{float(real or 0):.3g}" + ("" if single else " (reals only)")
    except (NoProof, InvalidProof) as error:
        margin = str(error)
        found = ATTACKS["pgd"](network, asked, seed=0, budget=Budget(restarts=50, steps=100))
        point = tuple(
            min(max(Fraction(float(x)), low), high)
            for x, low, high in zip(found.point, box.lower, box.upper, strict=True)
        )
        if violation_at(network, asked, point).violates:
            label, margin = "**refuted**", ""
    published, answers = facts.get(name, (None, ""))
    size = (given["degree"], given["input_dim"], given["hidden_dim"])
    return LabelRow(name, meta["seed"], *size, centre, published, label, margin, answers)


def read_facts(folder: Path | None) -> dict[str, tuple[float | None, str]]:
    """The published margin at the centre, and what each tool answered, by instance."""
    if folder is None:
        return {}
    with (folder / "profiles.csv").open(encoding="utf-8", newline="") as file:
        known = [r for r in csv.DictReader(file) if r["margin_at_x0"]]
    margins = {r["instance"]: abs(float(r["margin_at_x0"])) for r in known}
    answers: dict[str, list[str]] = {}
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["benchmark"] == "polynomial":
                answers.setdefault(row["instance"], []).append(f"{row['tool']} {row['status']}")
    return {name: (margins.get(name), ", ".join(found)) for name, found in answers.items()}


def page(rows: list[LabelRow]) -> str:
    """The page, in Markdown."""
    count = {word: sum(word in row.label for row in rows) for word in ("proven", "refuted", "open")}
    known = [row for row in rows if row.published is not None]
    same = sum(abs(row.centre / (row.published or 1) - 1) <= SAME for row in known)
    heads = ["instance", "seed", "degree", "inputs", "width", "μ at the centre", "published"]
    heads += ["label", "margin"]
    table = [
        [
            row.name,
            str(row.seed),
            str(row.degree),
            str(row.inputs),
            str(row.width),
            f"{row.centre:.6g}",
            "–" if row.published is None else f"{row.published:.6g}",
            row.label,
            row.margin,
        ]
        for row in rows
    ]
    late = Counter(
        answer.split()[0]
        for row in rows
        if "proven" in row.label
        for answer in row.answers.split(", ")
        if answer.endswith("TIMEOUT")
    )
    told = ", ".join(f"{tool} {number}" for tool, number in sorted(late.items()))
    lines = [
        "# The published labels of the polynomial networks",
        "",
        "The public repository of VeriStress-GT (arXiv 2605.17153) has the properties and the seeds of",
        "its 22 polynomial networks. They are rebuilt here from their seeds, as the paper describes them;",
        "each label (all are meant to be robust) is proven by `pinning`, refuted, or left open:",
        f"**{count['proven']} proven, {count['refuted']} refuted, {count['open']} open**.",
        "",
        "```",
        "python scripts/published_labels.py FOLDER --facts FACTS --out docs/published-labels.md",
        "```",
        "",
        "That the networks are the published ones is shown by μ at the centre of the box: it is the",
        f"published number, to a share of {SAME:g}, for {same} of the {len(known)} whose number is known.",
        "The proof is about the file that is rebuilt here.",
        "",
        *markdown_table(heads, table, numbers=False),
        "",
        f"Of the proven ones, as many timed out in the published runs, with 600 seconds each: {told}."
        if told
        else "",
        "",
        "Nothing of the other constructors is rebuilt here: their networks come from torch's random",
        "numbers, and exact radius from a solver. `milp26` is known to be false at its printed radius",
        "([the claims, judged](veristress-claims.md)); the others are open here.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, or print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--facts", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    facts = read_facts(given.facts)
    rows = [judge(path.parent, facts) for path in sorted(given.folder.glob("instances/*/meta.json"))]
    if not rows:
        parser.error(f"{given.folder} has no instances/NAME/meta.json")
    text = page(rows)
    if given.out:
        write_whole(given.out, text.encode())
    else:
        print(text)


if __name__ == "__main__":
    main()
