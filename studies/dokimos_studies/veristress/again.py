"""The published study beside our own runs: `dokimos-studies again RUN… [--facts FOLDER]`.

RUN are campaigns on `veristress` (`make state` makes them, and `dokimos run veristress`), whole or in part;
what they ran on `ladder`, `edge` and other draws (`veristress-SEED`) is counted, too. FOLDER has what was
published (see published.py).

The page has Table 4, Figures 2 and 4 (solved of run, mean and deviation of the seconds, by constructor),
Figure 3 (the AUC of each component) and Tables 1 and 2 (polynomial networks), beside the published numbers.
Instances are ours, of the published combinations, and so are limits and machine: the numbers stand beside
each other, no more.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, pstdev

import dokimos
from dokimos.campaigns.journal import RunRecord
from dokimos.core.errors import InputError
from dokimos.difficulty.components import symbol
from dokimos.difficulty.explain.rows import Explanation, Observation, Status
from dokimos.judging.judged_campaign import JudgedCampaign
from dokimos.reports.exports import markdown_table
from dokimos.suites.answers import Answer
from dokimos.suites.facts import COMPONENTS
from dokimos_studies.veristress.published import (
    CONSTRUCTORS,
    NNENUM_SUMMARY,
    ROBUST,
    TOOLS,
    Row,
    parameters,
    parser_for,
    results,
    show,
    table,
)

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
SUITE, OTHERS = "veristress", ("ladder", "edge")
#: A folder with another draw of the suite, named after its seed.
DRAW = re.compile(SUITE + r"-\d+")
#: How many points α,β-CROWN certified of five in Table 1 of the paper, by inputs, degree, width and buffer.
Shape = tuple[float, ...]
TABLE_1: dict[Shape, int] = {
    **{(inputs, 10, 100, 5e-3): 5 for inputs in (50, 100, 200, 300)},
    **{(100, degree, 100, 5e-3): 5 for degree in (2, 4, 6, 8, 10, 12, 14, 16)},
    (100, 18, 100, 5e-3): 4,
    (100, 20, 100, 5e-3): 3,
    (100, 22, 100, 5e-3): 2,
    **{(100, 10, width, 5e-3): 5 for width in (50, 200, 300, 500)},
    (100, 10, 100, 1e-3): 4,
    (100, 10, 100, 1e-4): 1,
}
#: What a verifier ends in that can read the network.
ABLE = (Status.SOLVED, Status.WRONG, Status.TIMEOUT, Status.MEMOUT, Status.UNKNOWN)
#: What counts for a runtime, there and here.
TIMED = ("UNSAT", "TIMEOUT")


class Published:
    """What the five verifiers answered on the 225 published instances."""

    def __init__(self, folder: Path | None) -> None:
        self.rows: list[Row] = results(folder, *ROBUST)
        self.shapes: dict[Shape, list[str]] = defaultdict(list)
        for row in table(folder, "combinations") if folder else ():
            if row["construction"] == CONSTRUCTORS["polynomial"]:
                given = parameters(row)
                shape = (given["input_dim"], given["degree"], given["hidden_dim"], given["delta_prime"])
                self.shapes[shape].append(row["instance"])

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
        said = _cell(sum(r["status"] == "UNSAT" for r in mine), len(mine), times)
        if verifier != "nnenum" or not self.rows or family not in NNENUM_SUMMARY:
            return said
        summary = NNENUM_SUMMARY[family]
        return f"{summary[0]}/{sum(summary)}; single answers: {said}"

    def outcomes(self, tool: str, shape: Shape) -> str:
        """What a tool answered on the polynomial networks of one shape."""
        told = [
            f"{float(r['wall_seconds']):.0f} s" if r["status"] == "UNSAT" else r["status"].lower()
            for r in self.rows
            if r["tool"] == tool and r["instance"] in self.shapes.get(shape, ())
        ]
        return ", ".join(told) or "–"


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
    told = markdown_table(["verifier", *GROUPS, "run"], rows)
    if not ("nnenum" in seen and published.rows):
        return told
    unsat, sat, late, failed = map(sum, zip(*NNENUM_SUMMARY.values(), strict=True))
    return [
        *told,
        "",
        "The published answers of nnenum are those of a partial run. The summary in the same repository,",
        f"and with it the paper's Table 4, has another one: {unsat} UNSAT, {sat} SAT, {late} timeouts and "
        f"{failed} errors",
        "on all but the polynomial networks; below, the summary comes first.",
    ]


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


def tables_1_and_2(seen: dict[str, list[Observation]], published: Published) -> list[str]:
    """The polynomial networks, by shape: what was answered here and there."""
    found: dict[Shape, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for verifier, mine in seen.items():
        for o in mine:
            if o.family == "polynomial":
                shape = tuple(o.knobs[name] for name in ("inputs", "degree", "width", "buffer"))
                told = f"{o.seconds:.0f} s" if o.status is Status.SOLVED else o.status.value
                found[shape][verifier].append(told)
    able = {
        o.verifier for mine in seen.values() for o in mine if o.family == "polynomial" and o.status in ABLE
    }
    verifiers = [name for name in seen if name in able]
    there = [tool for tool in ("abcrown", "neuralsat", "pyrat") if published.rows]
    rows = [
        [
            *(f"{number:g}" for number in shape),
            *(", ".join(answers[name]) or "–" for name in verifiers),
            f"{TABLE_1[shape]} of 5" if shape in TABLE_1 else "–",
            *(published.outcomes(tool, shape) for tool in there),
        ]
        for shape, answers in sorted(found.items())
        if able & set(answers)
    ]
    heads = ["inputs", "degree", "width", "δ", *verifiers, "Table 1", *(f"{t}, published" for t in there)]
    return markdown_table(heads, rows, numbers=False)


def other_suites(observations: Sequence[Observation]) -> list[str]:
    """Outcomes on the suites that the published study does not have."""
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for o in observations:
        if o.suite in OTHERS:
            counts[o.suite, o.verifier][o.status.value] += 1
    if not counts:
        return ["Nothing of them was run in the campaigns of this page."]
    rows = [
        [suite, verifier, ", ".join(f"{word} {n}" for word, n in sorted(found.items()))]
        for (suite, verifier), found in sorted(counts.items())
    ]
    return markdown_table(["suite", "verifier", "outcomes"], rows, numbers=False)


def _start(verifier: str, records: Sequence[RunRecord]) -> str:
    """What the quickest answer of a verifier took."""
    decided = (Answer.SAT, Answer.UNSAT)
    took = [r.cpu_seconds for r in records if r.verifier == verifier and r.answer in decided]
    return f"; quickest answer {min(took):.1f} s of CPU time" if took else ""


def draws(observations: Sequence[Observation]) -> list[str]:
    """Solved and wrong, by draw of the suite: what depends on the seed."""
    found: dict[tuple[str, str], dict[str, list[Observation]]] = defaultdict(lambda: defaultdict(list))
    suites = sorted({o.suite for o in observations if DRAW.fullmatch(o.suite)}, key=_seed)
    others = {o.verifier for o in observations if o.suite in suites}
    if not others:
        return ["Nothing was run on other draws."]
    for o in observations:
        if o.suite in (SUITE, *suites) and o.verifier in others:
            found[o.verifier, o.family][o.suite].append(o)
            found[o.verifier, "all"][o.suite].append(o)
    rows = [
        [
            verifier,
            family,
            *(_solved_and_wrong(found[verifier, family][suite]) for suite in (SUITE, *suites)),
        ]
        for verifier in sorted(others)
        for family in (*CONSTRUCTORS, "all")
    ]
    return markdown_table(["verifier", "constructor", SUITE, *suites], rows, numbers=False)


def _names(judged: JudgedCampaign) -> set[str]:
    """The names of the suites of a campaign."""
    return {suite.name for suite in judged.campaign.manifest.suites}


def _tool(verifier: str) -> str:
    """The name of a verifier without the place where this machine has it."""
    name, _, place = verifier.partition("=")
    return name if "/" in place else verifier


def _seed(suite: str) -> int:
    return int(suite.rpartition("-")[2])


def _solved_and_wrong(seen: Sequence[Observation]) -> str:
    status = Counter(o.status for o in seen)
    wrong = f", wrong {status[Status.WRONG]}" if status[Status.WRONG] else ""
    return f"{status[Status.SOLVED]}/{len(seen)}{wrong}" if seen else "–"


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


def _limits(record: RunRecord) -> str:
    """The limits of a run, in words."""
    if record.limits is None:
        return "limits not recorded"
    clock = f"{record.limits.wall_seconds:g} s"
    cpu = record.limits.cpu_seconds
    return f"{cpu:g} s of CPU time and at most {clock} by the clock" if cpu else clock


def page(runs: list[Path], published: Published) -> list[str]:
    """The page, in Markdown."""
    judged = dokimos.judge(runs)
    explanation = dokimos.explain(judged)
    on_suite = tuple(one for one in judged.campaigns if _names(one) == {SUITE})
    seen: dict[str, list[Observation]] = defaultdict(list)
    observations = [replace(o, verifier=_tool(o.verifier)) for o in explanation.observations]
    for o in observations:
        if o.suite == SUITE:
            seen[o.verifier].append(o)
    if not seen:
        raise InputError(f"None of these campaigns has a run on {SUITE}; `dokimos run {SUITE}` makes one.")
    run = [j.record for j in judged.judgements if j.record.suite == SUITE]
    records = [replace(record, verifier=_tool(record.verifier)) for record in run]
    days = sorted({record.started_at[:10] for record in records})
    limits: dict[str, set[str]] = defaultdict(set)
    for record in records:
        limits[record.verifier].add(_limits(record))
    done = [
        f"- {name}: {len(mine)} of 225, {' or '.join(sorted(limits[name]))}{_start(name, records)}"
        for name, mine in seen.items()
    ]
    return [
        "# The study again",
        "",
        "The study of VeriStress-GT (arXiv 2605.17153) has five verifiers on 225 instances with 600",
        "seconds each. Here is what was run of it on our own 225,",
        "[the published grid, proven](veristress.md), on",
        f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, with these limits for each run:",
        "",
        *done,
        "",
        "The quickest answer shows what it takes to start. Where that is most of the limit, a timeout says",
        "little about the instance.",
        "",
        "Published numbers stand beside ours, in brackets or in their own column; networks, limits and",
        "machines differ, and this machine did other work meanwhile, which wall-clock times include.",
        "What was not run is left out.",
        "",
        "```",
        "make state STATE='--group study'",
        "dokimos-studies again state-runs/study/veristress --facts FACTS \\",
        "  --out studies/results/study-again.md",
        "",
        "# as for this page, where each verifier has a campaign of its own",
        "dokimos run veristress --verifier NAME --cpu 10 --timeout 60 --out runs/NAME",
        "dokimos-studies again runs/* --facts FACTS --out studies/results/study-again.md",
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
        "components: `dokimos-studies figures RUN --map U,d_eff`.",
        "",
        *figure_3(dokimos.explain(replace(judged, campaigns=on_suite))),
        "",
        "## Tables 1 and 2: polynomial networks",
        "",
        "One line for each shape: seconds where a run ended in a certificate, else what it ended in; only",
        "verifiers that read such networks. *Table 1*: how many of five points α,β-CROWN certified within",
        "300 seconds; *published*: the answers in the published files, with 600 seconds. (The paper's",
        "Table 2 is made from them; it gives a limit of 360 seconds, and calls everything a timeout that",
        "is not certified.) Our networks have the same shapes and other draws, and the limits here are far",
        "smaller.",
        "",
        *tables_1_and_2(seen, published),
        "",
        "## Other draws",
        "",
        "The same combinations from other seeds (`dokimos generate --suite veristress --seed 6 --out",
        "veristress-6`, then `dokimos run veristress-6 …` as above): solved of run, and wrong answers.",
        "",
        *draws(observations),
        "",
        "## The ladder and the edge",
        "",
        *other_suites(observations),
        "",
        "[The ladder](ladder.md) has the breaking points of each verifier, and [the state of the",
        "verifiers](state-of-the-verifiers.md) each wrong answer on `ladder` and `edge`, and what nnenum",
        "and α,β-CROWN answer on `edge`.",
    ]


def main() -> None:
    """Write the page, or print it."""
    parser = parser_for(__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--facts", type=Path)
    given = parser.parse_args()
    show(page(given.runs, Published(given.facts)), given.out)
