"""The published study beside our own runs: `python scripts/study_again.py RUN… [--facts FOLDER]`.

RUN are campaigns on `veristress` (`make state` makes them, and `dokimos run veristress`), whole or in part.
FOLDER has `results.csv`, what five verifiers answered on the published instances (see published_study.py).
The page has Table 4, Figures 2 and 4 (solved of run, mean and deviation of the seconds, by constructor) and
Figure 3 (the AUC of each component), beside the published numbers. Instances are ours, of the published
combinations, and so are limits and machine: the numbers stand beside each other, no more.
"""

from __future__ import annotations

import argparse
import csv
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, pstdev

import dokimos
from dokimos.core.files import write_whole
from dokimos.difficulty.components import symbol
from dokimos.difficulty.explain.rows import Explanation, Observation, Status
from dokimos.reports.markdown import markdown_table
from dokimos.suites.profile_file import COMPONENTS

#: What the published files call a verifier and a constructor.
TOOLS = {"alpha-beta-crown": "abcrown"}
CONSTRUCTORS = {
    "exclusive-pairs": "mlp_relu.meap",
    "exact-radius": "mlp_relu.milp.exact_radius",
    "convex-corners": "mlp_relu.corners",
    "constant-on-box": "mlp_relu.embedded_projection",
    "contractive-cnn": "cnn.deep_contractive_cnn",
    "paired-bias": "cnn.cnn_paired_bias",
    "linear-attention": "attention.linear_dominance",
    "softmax-attention": "attention.fixed_pattern",
    "polynomial": "polynomial.algebraic_boundary",
}
GROUPS = {
    "UNSAT": (Status.SOLVED,),
    "SAT (wrong)": (Status.WRONG,),
    "timeout or unknown": (Status.TIMEOUT, Status.MEMOUT, Status.UNKNOWN),
    "error or unsupported": (Status.FAILED,),
}
PUBLISHED_GROUPS = {
    "UNSAT": ("UNSAT",),
    "SAT (wrong)": ("SAT",),
    "timeout or unknown": ("TIMEOUT", "UNKNOWN"),
    "error or unsupported": ("ERROR",),
}
#: What counts for a runtime, there and here.
TIMED = ("UNSAT", "TIMEOUT")


class Published:
    """What the five verifiers answered on the 225 published instances."""

    def __init__(self, folder: Path | None) -> None:
        self.rows: list[dict[str, str]] = []
        if folder is not None:
            with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
                wanted = ("veristress", "polynomial")
                self.rows = [row for row in csv.DictReader(file) if row["benchmark"] in wanted]

    def counts(self, verifier: str) -> Counter[str]:
        """How often each status was answered."""
        return Counter(r["status"] for r in self.rows if r["tool"] == TOOLS.get(verifier, verifier))

    def cell(self, verifier: str, family: str) -> str:
        """Solved of run, mean and deviation of the seconds, for one constructor."""
        mine = [
            r
            for r in self.rows
            if r["tool"] == TOOLS.get(verifier, verifier) and r["construction"] == CONSTRUCTORS.get(family)
        ]
        times = [float(r["wall_seconds"] or 0) for r in mine if r["status"] in TIMED]
        return _cell(sum(r["status"] == "UNSAT" for r in mine), len(mine), times)


def _cell(solved: int, total: int, times: list[float]) -> str:
    if not total:
        return "–"
    spent = f", {mean(times):.1f} ± {pstdev(times):.1f} s" if times else ""
    return f"{solved}/{total}{spent}"


def table_4(seen: dict[str, list[Observation]], published: Published) -> list[str]:
    """Outcomes, ours first."""
    rows = []
    for verifier, mine in seen.items():
        status = Counter(o.status for o in mine)
        theirs = published.counts(verifier)
        cells = []
        for name, statuses in GROUPS.items():
            ours = sum(status[s] for s in statuses)
            there = sum(theirs[s] for s in PUBLISHED_GROUPS[name])
            cells.append(f"{ours} ({there if theirs else '–'})")
        rows.append([verifier, *cells, f"{len(mine)} of 225 ({sum(theirs.values()) or '–'})"])
    return markdown_table(["verifier", *GROUPS, "run"], rows)


def figures_2_and_4(seen: dict[str, list[Observation]], published: Published) -> list[str]:
    """By constructor."""
    rows = []
    for verifier, mine in seen.items():
        by_family: dict[str, list[Observation]] = defaultdict(list)
        for o in mine:
            by_family[o.family].append(o)
        for family in CONSTRUCTORS:
            here = by_family.get(family, [])
            timed = [o.seconds for o in here if o.status in (Status.SOLVED, Status.TIMEOUT)]
            ours = _cell(sum(o.status is Status.SOLVED for o in here), len(here), timed)
            rows.append([verifier, family, ours, published.cell(verifier, family)])
    return markdown_table(["verifier", "constructor", "here", "published"], rows, numbers=False)


def figure_3(explanation: Explanation) -> list[str]:
    """The AUC of each component, over everything and within constructors."""
    rows = []
    for account in explanation.verifiers:
        for row in account.separations:
            if row.component in COMPONENTS:
                numbers = (row.pooled_auc, row.auc, row.p_value)
                said = ["–" if n is None else f"{n:.3g}" for n in numbers]
                rows.append([account.subject, symbol(row.component), *said, row.note])
    return markdown_table(
        ["verifier", "component", "AUC over everything", "AUC within", "p", "note"], rows, numbers=False
    )


def page(runs: list[Path], published: Published) -> str:
    """The page, in Markdown."""
    judged = dokimos.judge(runs)
    explanation = dokimos.explain(judged)
    seen: dict[str, list[Observation]] = defaultdict(list)
    for o in explanation.observations:
        seen[o.verifier].append(o)
    limits = sorted(
        {
            f"{j.record.limits.cpu_seconds:g} s of CPU time and at most {j.record.limits.wall_seconds:g} s"
            if j.record.limits.cpu_seconds
            else f"{j.record.limits.wall_seconds:g} s"
            for j in judged.judgements
            if j.record.limits is not None
        }
    )
    days = sorted({j.record.started_at[:10] for j in judged.judgements})
    done = ", ".join(f"{name} {len(mine)} of 225" for name, mine in seen.items())
    lines = [
        "# The study again",
        "",
        "The study of VeriStress-GT (arXiv 2605.17153) has five verifiers on 225 instances with 600",
        "seconds each. Here is what was run of it on our own 225,",
        "[the published grid, proven](veristress.md):",
        f"**{done}**, {' or '.join(limits)} a run, on {' to '.join(dict.fromkeys((days[0], days[-1])))}.",
        "Published numbers stand beside ours, in brackets or in their own column; networks, limits and",
        "machines differ. Nothing is said of what was not run.",
        "",
        "```",
        "make state STATE='--group study'",
        "python scripts/study_again.py state-runs/study/veristress --facts FACTS --out docs/study-again.md",
        "```",
        "",
        "## Table 4: outcomes",
        "",
        *table_4(seen, published),
        "",
        "## Figures 2 and 4: by constructor",
        "",
        "Solved of run; mean and deviation of the seconds over what was solved or timed out.",
        "",
        *figures_2_and_4(seen, published),
        "",
        "## Figure 3: components and timeouts",
        "",
        "The published numbers are in [the claims, judged](veristress-claims.md). The heat map of two",
        "components is in the page of `dokimos report`.",
        "",
        *figure_3(explanation),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the page, or print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--facts", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    text = page(given.runs, Published(given.facts))
    if given.out:
        write_whole(given.out, text.encode())
    else:
        print(text)


if __name__ == "__main__":
    main()
