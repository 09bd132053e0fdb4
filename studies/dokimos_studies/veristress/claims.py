"""What VeriStress-GT's own runs say of its claims: `dokimos-studies claims FOLDER --out PAGE`.

FOLDER has three tables of facts from the paper's public repository (see published.py).
Every sentence of the page, and every verdict on a claim, is computed from them. Components are tested as
`dokimos explain` tests them: within constructors, with networks that are the same as one unit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import numpy as np

from dokimos.core.files import write_whole
from dokimos.difficulty.components import symbol
from dokimos.difficulty.explain.rows import EXPLAINING, Observation, Status
from dokimos.difficulty.explain.separation import separations
from dokimos.difficulty.explain.strata import Resampling, Strata
from dokimos.judging.label_tasks import read_open
from dokimos.reports.exports import markdown_table
from dokimos.reports.render import drawing_style
from dokimos.suites.entry import SuiteEntry
from dokimos.suites.facts import COMPONENTS, FOLDER, load_profile
from dokimos.suites.folder import Suite, read_suite
from dokimos_studies.veristress.hardness import ranks
from dokimos_studies.veristress.interaction import interactions
from dokimos_studies.veristress.published import (
    BENCHMARKS,
    COLUMNS,
    NNENUM_SUMMARY,
    ROBUST,
    expect_all,
    parameters,
    parser_for,
    profiles,
    show,
    table,
)
from dokimos_studies.veristress.trajectory import trajectories, trajectory

#: Table 4 of the paper: UNSAT, SAT, timeout or unknown, error or unsupported.
TABLE_4 = {
    "abcrown": (193, 0, 32, 0),
    "marabou": (122, 5, 41, 57),
    "neuralsat": (188, 2, 23, 12),
    "pyrat": (160, 0, 25, 40),
    "nnenum": (102, 1, 45, 77),
}
STATUSES = {"TIMEOUT": Status.TIMEOUT, "UNKNOWN": Status.UNKNOWN, "ERROR": Status.FAILED}
HOLDS, DOES_NOT, UNSUPPORTED = "holds", "does not hold", "not supported"


@dataclass(frozen=True)
class Run:
    """One published answer."""

    tool: str
    benchmark: str
    instance: str
    construction: str
    status: str
    seconds: float


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, what its files say, and whether the one follows from the other."""

    words: str
    found: str
    verdict: str


class Study:
    """The published tables, read."""

    def __init__(self, folder: Path) -> None:
        self.runs = [
            Run(
                r["tool"],
                r["benchmark"],
                r["instance"],
                r["construction"],
                r["status"],
                float(r["wall_seconds"] or 0),
            )
            for r in table(folder, "results")
        ]
        self.profiles = {
            place: {name: float(row[c]) for name, c in COLUMNS.items() if row[c]}
            for place, row in profiles(folder).items()
        }
        combinations = table(folder, "combinations")
        self.networks = {(r["benchmark"], r["instance"]): r["onnx_sha256"] for r in combinations}
        self.parameters = {r["instance"]: parameters(r) for r in combinations}
        ran = [(run.benchmark, run.instance) for run in self.runs]
        expect_all(folder, ran, self.profiles, "profiles")
        listed = {(ours, i) for ours, of in BENCHMARKS.items() for b, i in self.networks if b == of}
        expect_all(folder, [place for place in ran if place[0] in ROBUST], listed, "combinations")
        self.repeated = sum(
            count - 1
            for count in Counter((r["onnx_sha256"], r["vnnlib_sha256"]) for r in combinations).values()
        )
        self.tools = list(dict.fromkeys(run.tool for run in self.runs))

    def profile(self, run: Run) -> Mapping[str, float]:
        """The components of the instance of a run."""
        return self.profiles.get((run.benchmark, run.instance), {})

    def answers(self, *benchmarks: str) -> list[Run]:
        """The runs on some benchmarks."""
        return [run for run in self.runs if run.benchmark in benchmarks]

    def values(self, benchmark: str, component: str) -> dict[str, float]:
        """One component of all instances of a benchmark, in their order."""
        return {
            instance: found[component]
            for (of, instance), found in self.profiles.items()
            if of == benchmark and component in found
        }

    def observations(self, tool: str) -> list[Observation]:
        """What `explain` needs to know of the runs of a tool, on all benchmarks."""
        return [
            Observation(
                suite=run.benchmark,
                instance=run.instance,
                position=number,
                family=run.construction,
                label="unsat" if run.benchmark in ROBUST else None,
                verifier=tool,
                styles=(),
                status=_status(run),
                seconds=run.seconds,
                repeats=1,
                components=self.profile(run),
                network_sha256=self.networks.get((BENCHMARKS[run.benchmark], run.instance), run.instance),
            )
            for number, run in enumerate(self.runs)
            if run.tool == tool
        ]


def _status(run: Run) -> Status:
    """As the paper counts: what is answered is solved, unless it contradicts the label."""
    if run.status == "SAT" and run.benchmark in ROBUST:
        return Status.WRONG
    return STATUSES.get(run.status, Status.SOLVED)


def outcomes(study: Study) -> list[str]:
    """Table 4 beside what the published files add up to."""
    groups = (("UNSAT",), ("SAT",), ("TIMEOUT", "UNKNOWN"), ("ERROR",))
    rows = []
    for tool in study.tools:
        runs = [run for run in study.answers(*ROBUST) if run.tool == tool]
        counts = [sum(run.status in group for run in runs) for group in groups]
        paper = TABLE_4[tool]
        pairs = [
            f"{p}" if p == c else f"{p} / **{c}**"
            for p, c in zip((*paper, 225), (*counts, len(runs)), strict=True)
        ]
        rows.append([tool, *pairs])
    return markdown_table(
        ["tool", "UNSAT", "SAT", "timeout or unknown", "error or unsupported", "instances"], rows
    )


def _nnenum(study: Study) -> list[str]:
    """Why the row of nnenum in Table 4 is not the sum of its published answers."""
    said = [sum(counts) for counts in zip(*NNENUM_SUMMARY.values(), strict=True)]
    there, apart = (
        [run for run in study.answers(benchmark) if run.tool == "nnenum"] for benchmark in ROBUST
    )
    failed = sum(run.status == "ERROR" for run in apart)
    adds_up = (*said[:3], said[3] + failed) == TABLE_4["nnenum"] and failed == len(apart)
    unsat, sat, late, errors = said
    return [
        f"The answers of nnenum are those of a partial run: {len(there)} of {sum(said)} instances, and the",
        f"polynomial ones. The repository also has a summary of all {sum(said)}, from a run whose single",
        f"answers it lacks: {unsat} UNSAT, {sat} SAT, {late} timeouts and {errors} errors. With the",
        f"{failed} errors on polynomial networks, this {'is' if adds_up else 'is not'} Table 4. What else",
        "this page says of nnenum is about the partial run.",
    ]


def components(study: Study, resampling: Resampling) -> list[str]:
    """How well each component separates timeouts: over everything, and within constructors."""
    rows = []
    for tool in study.tools:
        observations = study.observations(tool)
        strata = Strata.of(observations, EXPLAINING)
        for row in separations(tool, observations, resampling, strata):
            if row.component in COMPONENTS:
                rows.append(
                    [
                        tool,
                        symbol(row.component),
                        _number(row.pooled_auc),
                        _number(row.auc),
                        _number(row.p_value),
                        str(row.families),
                        "separates" if row.separates else row.note or "could be chance",
                    ]
                )
    heads = ["tool", "component", "AUC over everything", "AUC within", "p", "informative", "verdict"]
    return markdown_table(heads, rows)


def claims(study: Study, resampling: Resampling) -> list[Claim]:
    """Each checkable sentence of section 4, in its order."""
    return [
        _false_sat(study),
        _tolerance(study),
        _tolerance_at(study),
        _mnistfc_gap(study),
        _oval_dimension(study),
        _meap(study),
        _corners(study),
        _corners_slow(study),
        _figure_3_left(study, resampling),
        _figure_3_right(study, resampling),
    ]


def _false_sat(study: Study) -> Claim:
    wrong = [run for run in study.answers(*ROBUST) if run.status == "SAT"]
    by_tool = Counter(run.tool for run in wrong)
    names = ", ".join(sorted({run.instance for run in wrong}))
    return Claim(
        "All labels are UNSAT, and multiple verifiers return false SAT claims.",
        f"{len(wrong)} SAT answers by {len(by_tool)} tools ({_counts(by_tool)}), on {names}. "
        "The property of milp26 was published with two radii, and the larger one is too large: the "
        "recorded counterexample is right for that one, and lies outside the box of the other.",
        HOLDS if len({run.tool for run in wrong if run.instance != "milp26"}) > 1 else DOES_NOT,
    )


def _wrong_by_share(study: Study) -> Counter[float | None]:
    """False `SAT` answers by share of the exact radius, None for other constructors; milp26 is left out."""
    return Counter(
        study.parameters[run.instance].get("epsilon_frac")
        for run in study.answers(*ROBUST)
        if run.status == "SAT" and run.instance != "milp26"
    )


def _tolerance(study: Study) -> Claim:
    shares = _wrong_by_share(study)
    near = sum(count for share, count in shares.items() if share is not None and share > 0.9999)
    told = ", ".join(
        f"{count} at {share}" if share is not None else f"{count} of another constructor"
        for share, count in shares.items()
    )
    return Claim(
        "Many of the false claims can primarily be attributed to numerical tolerances.",
        f"Without milp26, {near} of {shares.total()} are at more than 0.9999 of the exact radius ({told}).",
        HOLDS if 2 * near > shares.total() else UNSUPPORTED,
    )


def _tolerance_at(study: Study) -> Claim:
    at = _wrong_by_share(study)[0.999]
    asked = sum(given.get("epsilon_frac") == 0.999 for given in study.parameters.values())
    return Claim(
        "For instance, a radius of 0.999 times the exact one led to SAT for a number of verifiers.",
        f"{asked} instances have that radius. "
        + (f"{at} answers are SAT" if at else "No answer is SAT")
        + ", but on milp26, where SAT may be right.",
        HOLDS if at > 1 else DOES_NOT,
    )


def _mnistfc_gap(study: Study) -> Claim:
    gaps = list(study.values("mnistfc", "ibp_gap").values())
    last, rest = gaps[-16:], gaps[:-16]
    above = sum(gap >= 2e5 for gap in last)
    ours, oval = (
        max(g for benchmark in names for g in study.values(benchmark, "ibp_gap").values())
        for names in (ROBUST, ("oval21",))
    )
    return Claim(
        "The final 16 MNIST_fc instances have G_IBP ≥ 2·10⁵, several orders of magnitude above the other "
        "ones, VeriStress-GT and oval21.",
        f"{above} of the final 16 do, and {sum(g >= 2e5 for g in rest)} of the others; the final 16 begin "
        f"at {min(last):.3g}, the others reach {max(rest):.3g}, VeriStress-GT {ours:.3g} and oval21 "
        f"{oval:.3g}.",
        HOLDS if above == 16 and min(last) > 100 * max(*rest, ours, oval) else DOES_NOT,
    )


def _oval_dimension(study: Study) -> Claim:
    dimensions = list(study.values("oval21", "gradient_dimension").items())
    named = dimensions[10:17]
    certified = {
        name: sum(r.instance == name and r.status == "UNSAT" for r in study.answers("oval21"))
        for name, _ in named
    }
    largest = max(study.values("mnistfc", "gradient_dimension").values())
    least = min(value for _, value in named)
    return Claim(
        "In oval21, instances 10 to 16 are certified by at most two verifiers each and have d_eff > 1000, "
        "more than twice any value in MNIST_fc.",
        f"Counted from 0: d_eff from {least:.4g}, at most {max(certified.values())} certificates each, "
        f"the largest d_eff of MNIST_fc is {largest:.4g}. "
        f"{sum(v > 1000 for _, v in dimensions)} instances of oval21 exceed 1000.",
        HOLDS if least > max(1000, 2 * largest) and max(certified.values()) <= 2 else DOES_NOT,
    )


def _meap(study: Study) -> Claim:
    names = ("ibp_gap", "unstable", "gradient_dimension")
    found: dict[int, list[tuple[float, ...]]] = defaultdict(list)
    for (benchmark, instance), profile in study.profiles.items():
        given = study.parameters.get(instance, {})
        is_meap = benchmark == "veristress" and instance.startswith("meap")
        if is_meap and (given["epsilon"], given["gamma"]) == (0.1, 0.001):
            found[given["num_pairs"]].append(tuple(profile[name] for name in names))
    levels = [tuple(map(median, zip(*found[pairs], strict=True))) for pairs in sorted(found)]
    rises = [all(a[k] <= b[k] for a, b in pairwise(levels)) for k in range(3)]
    told = "; ".join(
        f"{pairs} pairs: G_IBP {gap:.3g}, U {unstable:.3g}, d_eff {dimension:.3g}"
        for pairs, (gap, unstable, dimension) in zip(sorted(found), levels, strict=True)
    )
    return Claim(
        "For MEAP, increasing difficulty produces large G_IBP, high U and large d_eff.",
        f"At ε = 0.1 and γ = 10⁻³: {told}. "
        + " ".join(
            f"{symbol(n)} {'rises' if r else 'does not rise'} throughout."
            for n, r in zip(names, rises, strict=True)
        ),
        HOLDS if all(rises) else DOES_NOT,
    )


def _corners(study: Study) -> Claim:
    corners = {
        name: [p[name] for (_, i), p in study.profiles.items() if i.startswith("rc")]
        for name in ("regions", "gradient_dimension")
    }
    return Claim(
        "Corners have A_τ = 0 and d_eff ≈ 0.",
        f"A_τ is 0 for {sum(v == 0 for v in corners['regions'])} of "
        f"{len(corners['regions'])}, d_eff at most "
        f"{max(corners['gradient_dimension']):.3g} (any gradient but 0 has at least 1). "
        f"The margin that was "
        "profiled is constant almost everywhere, so both measure a constant.",
        HOLDS if max(corners["regions"]) == 0 and max(corners["gradient_dimension"]) < 0.1 else DOES_NOT,
    )


def _corners_slow(study: Study) -> Claim:
    """Along the sweep of the scale: the hinges stay, and with them the regions; only the slopes grow."""
    seconds: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    others = 0
    gaps: list[float] = []
    for run in study.runs:
        if run.construction.endswith("corners") and run.status in ("UNSAT", "TIMEOUT"):
            given = study.parameters[run.instance]
            if given["num_hinges"] == 16:
                gaps.append(study.profile(run)["ibp_gap"])
                seconds[run.tool][float(given["hinge_l1"])].append(run.seconds)
            else:
                others += run.status == "TIMEOUT"
    ends = {tool: (median(by[min(by)]), median(by[max(by)])) for tool, by in seconds.items()}
    told = ", ".join(f"{tool} {first:.3g} to {last:.3g} s" for tool, (first, last) in ends.items())
    return Claim(
        "On corners, verifiers slow down or time out as G_IBP grows, so that looseness can be isolated "
        "from the complexity of nonlinear regions.",
        f"With 16 hinges the scale of their slopes alone moves G_IBP from {min(gaps):.3g} to "
        f"{max(gaps):.3g}; the median time goes up with it (stopped at 600 s): {told}. The other {others} "
        "timeouts on corners are where there are more hinges.",
        HOLDS if all(first < last for first, last in ends.values()) else UNSUPPORTED,
    )


def _figure_3_left(study: Study, resampling: Resampling) -> Claim:
    found = [
        (tool, row)
        for tool in study.tools
        for row in separations(tool, study.observations(tool), resampling)
        if row.component in COMPONENTS
    ]
    tested = [(tool, row) for tool, row in found if row.p_value is not None]
    separating = [f"{symbol(row.component)} for {tool}" for tool, row in tested if row.separates]
    pooled = sum(abs((row.pooled_auc or 0.5) - 0.5) > 0.1 for _, row in found)
    return Claim(
        "Figure 3, left: the components are associated with timeouts.",
        f"Over all benchmarks together, {pooled} of {len(found)} AUCs lie more than 0.1 "
        f"from chance. Within "
        f"constructors, {len(separating)} of {len(tested)} separate"
        + (f": {', '.join(separating)}." if separating else ".")
        + " The rest of the association is between constructors, which differ in everything at once.",
        HOLDS if len(separating) > len(tested) / 2 else UNSUPPORTED,
    )


def _figure_3_right(study: Study, resampling: Resampling) -> Claim:
    told, significant = [], 0
    for tool in study.tools:
        for row in interactions(tool, study.observations(tool), resampling):
            if {row.first, row.second} == {"unstable", "gradient_dimension"}:
                significant += row.interacts
                told.append(f"{tool} {row.note or f'p = {_number(row.p_value)}'}")
    return Claim(
        "Figure 3, right: timeouts depend on an interaction of U and d_eff; U has little "
        "effect where d_eff "
        "is small.",
        "The product term within constructors: " + "; ".join(told) + ".",
        HOLDS if significant > len(study.tools) / 2 else UNSUPPORTED,
    )


Labels = Mapping[str, Suite]
"""Suites that `dokimos label` has labelled, by benchmark, in the order of the published instances."""


def disagreements(study: Study, labels: Labels) -> list[str]:
    """Instances on which one tool says SAT and another UNSAT, and what is proven."""
    rows = []
    for benchmark in BENCHMARKS:
        by_instance: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for run in study.answers(benchmark):
            by_instance[run.instance][run.status].append(run.tool)
        for instance, said in by_instance.items():
            if "SAT" in said and "UNSAT" in said:
                proven = _label(benchmark, instance, labels)
                rows.append([benchmark, instance, ", ".join(said["SAT"]), ", ".join(said["UNSAT"]), proven])
    return markdown_table(["benchmark", "instance", "SAT", "UNSAT", "proven here"], rows, numbers=False)


def settled(study: Study, labels: Labels) -> list[str]:
    """For each tool, how many of its SAT and UNSAT answers a proof confirms, refutes, or leaves open."""
    rows = []
    for benchmark in labels:
        for tool in study.tools:
            for status in ("SAT", "UNSAT"):
                runs = [r for r in study.answers(benchmark) if (r.tool, r.status) == (tool, status)]
                if not runs:
                    continue
                found = Counter(_label(benchmark, run.instance, labels) for run in runs)
                other = "unsat" if status == "SAT" else "sat"
                counts = (len(runs), found[status.lower()], found[other], found["open"], found["–"])
                rows.append([benchmark, tool, status, *map(str, counts)])
    heads = ["benchmark", "tool", "answer", "in all", "confirmed", "refuted", "open", "not tried"]
    return markdown_table(heads, rows)


def _label(benchmark: str, instance: str, labels: Labels) -> str:
    """`sat` or `unsat` where that is proven, `open` where it is not, `–` where nobody has tried."""
    if benchmark not in labels:
        return "–"
    suite = labels[benchmark]
    entry = _entry(benchmark, instance, suite)
    truth = entry.read_truth()
    if truth is not None:
        return truth.label.value
    return "open" if read_open(suite.folder, entry) or benchmark in ROBUST else "–"


def _entry(benchmark: str, instance: str, suite: Suite) -> SuiteEntry:
    """The entry of a published instance in a suite of published_networks.py."""
    if benchmark in ROBUST:
        return suite.entry(instance)
    return suite.entries[int(instance.rpartition("_")[2]) - (benchmark == "mnistfc")]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def _settling(study: Study, labels: Labels) -> list[str]:
    if not labels:
        return []
    return [
        "## Answers on published benchmarks, held against proofs",
        "",
        "The networks and properties of the published runs ([how they are rebuilt](published-labels.md)),",
        "with a proof of either answer where one was found; *not tried*: nobody has looked for one here.",
        "Polynomial networks, which were run apart, have rows of their own. Proofs are over the reals, on",
        "the files as rebuilt. Where a margin is below 1e-6, rounding or the last bits of a weight may",
        "decide: a refuted answer need not be a mistake of the tool then.",
        "On `mnistfc` and `oval21` those with a `SAT` answer were tried, by attacks and as by `dokimos",
        "label --budget 60s`.",
        "",
        *settled(study, labels),
        "",
    ]


def measured_again(study: Study, labels: Labels) -> list[str]:
    """Rank correlations of the published components with ours, on the same files, where both are known."""
    rows = []
    for benchmark, suite in labels.items():
        known = [(i, c) for (of, i), c in study.profiles.items() if of == benchmark]
        places = [
            (theirs, suite.folder / FOLDER / f"{_entry(benchmark, instance, suite).name}.json")
            for instance, theirs in known
        ]
        both = [(theirs, load_profile(path).components) for theirs, path in places if path.is_file()]
        if both:
            pairs = [
                [(theirs[name], ours[name].value) for theirs, ours in both if ours[name].value is not None]
                for name in COMPONENTS
            ]
            found = [[ranks(np.array(column)) for column in zip(*pair, strict=True)] for pair in pairs]
            rho = [np.corrcoef(theirs, ours)[0, 1] for theirs, ours in found]
            rows.append([benchmark, str(len(both)), *(f"{r:+.2f}" for r in rho)])
    if not rows:
        return []
    return [
        "## The published profiles, measured again",
        "",
        "Rank correlation of the published components with those of `dokimos profile`, on the same files.",
        "",
        *markdown_table(["benchmark", "instances", *map(symbol, COMPONENTS)], rows),
        "",
    ]


#: The figures of the paper that show a benchmark of VNN-COMP, instance by instance.
FIGURES = {"mnistfc": 5, "oval21": 6}


def drawn(study: Study, benchmark: str) -> str:
    """The published components of every instance of a benchmark, and below them every tool's outcome."""
    seen = [o for tool in study.tools for o in study.observations(tool) if o.suite == benchmark]
    positions = {name: number for number, name in enumerate(sorted({o.instance for o in seen}))}
    (row,) = trajectories([replace(o, position=positions[o.instance]) for o in seen])
    figure = trajectory(row, name=f"published-{benchmark}")
    assert figure is not None
    return figure.standalone(drawing_style())


def _stopped_early(study: Study) -> str:
    """Which tools were stopped well before the 360 seconds of the paper, and when."""
    told = []
    for benchmark in FIGURES:
        late: dict[str, list[float]] = defaultdict(list)
        for run in study.answers(benchmark):
            if run.status == "TIMEOUT":
                late[run.tool].append(run.seconds)
        early = [f"{tool} after {median(s):.0f}" for tool, s in late.items() if median(s) < 0.95 * 360]
        told += [f"on {benchmark} {', '.join(early)}"] if early else []
    return f"some were stopped earlier: {'; '.join(told)}" if told else "they had them"


def _figures(study: Study) -> list[str]:
    lines = [
        "## Figures 5 and 6: instance by instance",
        "",
        "The published components above, the published outcomes below. These benchmarks have no labels of",
        "their own: an answer counts as solved. The paper gives every tool 360 seconds; by the files,",
        f"{_stopped_early(study)}.",
        "",
    ]
    for benchmark, number in FIGURES.items():
        count = len({run.instance for run in study.answers(benchmark)})
        words = f"Figure {number}, {benchmark}: {count} instances"
        lines += [f"![{words}](published-{benchmark}.svg)", "", f"*{words}.*", ""]
    return lines


def _verdicts(marks: Mapping[str, int]) -> str:
    """How many claims hold, do not hold, and are not supported."""
    words = {HOLDS: ("holds", "hold"), DOES_NOT: ("does not hold", "do not hold")}
    words[UNSUPPORTED] = ("is not supported", "are not supported")
    one, two, three = (f"{marks[mark]} {words[mark][marks[mark] != 1]}" for mark in words)
    return f"{one}, {two} and {three}"


def page(study: Study, resampling: Resampling, labels: Labels) -> list[str]:
    """The page, in Markdown."""
    found = claims(study, resampling)
    marks = Counter(claim.verdict for claim in found)
    return [
        "# The claims of VeriStress-GT, judged by its own runs",
        "",
        "*Stress-Testing Neural Network Verifiers with Provably Robust Instances*, D. "
        "Troxell, Y. Alexandr,",
        "S. Hunt, S. Lei, G. Montúfar, arXiv 2605.17153, CC BY 4.0. Its public "
        "repository has the answers of",
        "five verifiers and the profile of every instance. This page is computed from those tables by",
        "",
        "```",
        "dokimos-studies claims FACTS --out studies/results/veristress-claims.md \\",
        "    --labels veristress=SUITE polynomial=SUITE mnistfc=SUITE oval21=SUITE",
        "```",
        "",
        "where FACTS holds them under the names that `veristress/published.py` lists, and the suites are",
        "those of `dokimos-studies networks`, labelled: one suite has the 225 published instances,",
        "`veristress` and `polynomial` alike. `dokimos explain` tests its own campaigns in the same way:",
        "[Explaining](../../docs/difficulty.md#why-verifiers-slow-down).",
        "",
        "## Outcomes",
        "",
        "Table 4 of the paper; where the published files add up to another number, it follows in bold.",
        "",
        *outcomes(study),
        "",
        *_nnenum(study),
        "",
        f"Of the {len(study.parameters)} published instances, {study.repeated} repeat "
        f"another one byte for byte.",
        "",
        "## The claims of section 4",
        "",
        f"Of {len(found)} claims, {_verdicts(marks)}. *Not supported* means that the runs neither show nor",
        "refute it.",
        "",
        *markdown_table(
            ["claim", "what the files say", "verdict"],
            [[c.words, c.found, f"**{c.verdict}**"] for c in found],
            numbers=False,
        ),
        "",
        "## Components and timeouts",
        "",
        "*AUC over everything* compares every timeout with everything solved, whatever the constructor, as",
        "Figure 3 does. *AUC within* compares within constructors only; p is for all components of a tool",
        "together, by permuting outcomes within constructors; *informative* counts the "
        "constructors with both",
        "outcomes.",
        "",
        *components(study, resampling),
        "",
        "## Tools that contradict each other",
        "",
        *disagreements(study, labels),
        "",
        *_settling(study, labels),
        *measured_again(study, labels),
        *_figures(study),
    ]


def main() -> None:
    """Write the page, and its figures beside it; or print it."""
    parser = parser_for(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--labels", nargs="*", default=[], metavar="BENCHMARK=SUITE")
    given = parser.parse_args()
    pairs = [text.partition("=") for text in given.labels]
    for name, _, place in pairs:
        if name not in BENCHMARKS or not place:
            parser.error(
                f"--labels takes BENCHMARK=SUITE, and a benchmark is one of {', '.join(BENCHMARKS)}"
            )
    if given.resamples < 1:
        parser.error("--resamples must be at least 1")
    labels = {name: read_suite(Path(place)) for name, _, place in pairs}
    study = Study(given.folder)
    if given.out:
        for benchmark in FIGURES:
            write_whole(given.out.parent / f"published-{benchmark}.svg", drawn(study, benchmark).encode())
    show(page(study, Resampling(resamples=given.resamples), labels), given.out)
