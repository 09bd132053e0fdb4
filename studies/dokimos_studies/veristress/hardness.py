"""What else measures hardness: `dokimos-studies hardness [--facts FOLDER] [--runs RUN…]`.

FOLDER has `profiles.csv` and `results.csv` of the published study (see published_study.py): from them come
the rank correlations of the components that the paper discarded with its five, and what each adds to the
five. RUN are campaigns on suites that were profiled with `dokimos profile SUITE --more`: from them comes
whether the size of the smallest proof predicts timeouts better than the five. Everything is compared within
constructors.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import dokimos
from dokimos.difficulty.components import symbol
from dokimos.difficulty.explain.rows import Observation, Status
from dokimos.reports.exports import markdown_table
from dokimos.suites.facts import COMPONENTS
from dokimos_studies.veristress.published import (
    COLUMNS,
    ROBUST,
    expect_all,
    parser_for,
    profiles,
    results,
    show,
)

Floats = NDArray[np.float64]
#: Those of Table 3 that the published files have, by what the paper calls them.
DISCARDED = {
    "IBP absolute gap": "ibp_sample_gap",
    "IBP lower margin": "ibp_margin_lb",
    "unstable count": "n_unstable",
    "total nonlinear units": "n_total_neurons",
    "raw local pattern count": "A_tau_local_n_distinct_patterns",
    "gradient dimension, 95 %": "effective_grad_dim_p95",
    "gradient norm": "grad_l1_mean",
    "gradient sensitivity": "grad_variation_l2",
    "gradient concentration": "grad_sensitivity_concentration",
    "relative linearization error": "relative_linearization_error",
    "absolute linearization error": "linearization_error_mean",
    "first-order margin ratio": "first_order_margin_ratio",
    "estimated local Lipschitz": "lip_empirical_max",
    "curvature proxy": "second_diff_mean",
}
#: Its interactions: products of two of the five; the last is a quotient.
PRODUCTS = {
    "instability-region": (2, 3, 1),
    "looseness-instability": (1, 2, 1),
    "looseness-region": (1, 3, 1),
    "margin-looseness": (1, 0, -1),
}
LEAST = 3
ROUNDS, BOOTSTRAPS = 1000, 400
LEAVES = "proof leaves"
#: What a comparison over all of `axes` cannot show.
CIRCULAR = "The reference looks for such proofs itself: for it, the answer is close to circular."
ONE_BY_ONE = (
    "In `axes` each of the five moves in one group only, so that none of them can separate the timeouts of "
    "all groups."
)
#: What a proof stands behind.
CERTIFIED = ("margin_low", "margin_high", "linear_regions", "proof_leaves")


@dataclass(frozen=True)
class Sample:
    """Instances of one subject: a family each, values in columns, and whether it timed out."""

    families: Sequence[str]
    values: Floats
    late: NDArray[np.bool_]


def ranks(values: Floats) -> Floats:
    """Ranks from −½ to ½, ties in the middle; what is not known in the middle of all."""
    filled = np.where(np.isnan(values), np.nanmedian(values) if (~np.isnan(values)).any() else 0.0, values)
    order = np.argsort(np.argsort(filled, kind="stable"), kind="stable").astype(float)
    for value in np.unique(filled):
        order[filled == value] = order[filled == value].mean()
    return (order + 0.5) / len(order) - 0.5


def groups(families: Sequence[str]) -> list[NDArray[np.int64]]:
    """The lines of each family."""
    names = np.array(families)
    return [np.flatnonzero(names == name) for name in dict.fromkeys(families)]


def auc_within(families: Sequence[str], values: Floats, late: NDArray[np.bool_]) -> float | None:
    """The AUC of timeouts within families, with van Elteren's weights; None without both outcomes."""
    total = weight = 0.0
    for lines in groups(families):
        m, k = int(late[lines].sum()), int((~late[lines]).sum())
        if m and k:
            own = ranks(values[lines]) * len(lines) + len(lines) / 2 + 0.5
            won = own[late[lines]].sum() - m * (m + 1) / 2
            total += won / (m + k + 1)
            weight += m * k / (m + k + 1)
    return total / weight if weight else None


def p_value(families: Sequence[str], values: Floats, late: NDArray[np.bool_]) -> float | None:
    """How often outcomes permuted within families are as far from ½."""
    seen = auc_within(families, values, late)
    if seen is None:
        return None
    rng = np.random.default_rng(0)
    drawn, weight = np.zeros(ROUNDS), 0.0
    for lines in groups(families):
        m, k = int(late[lines].sum()), int((~late[lines]).sum())
        if m and k:
            own = ranks(values[lines]) * len(lines) + len(lines) / 2 + 0.5
            chosen = np.argsort(rng.random((ROUNDS, len(lines))), axis=1)[:, :m]
            drawn += (own[chosen].sum(axis=1) - m * (m + 1) / 2) / (m + k + 1)
            weight += m * k / (m + k + 1)
    hits = int((np.abs(drawn / weight - 0.5) >= abs(seen - 0.5) - 1e-12).sum())
    return (1 + hits) / (1 + ROUNDS)


def rest(families: Sequence[str], values: Floats, five: Floats) -> Floats:
    """What the ranks of the five leave of a component's ranks, within families, by least squares."""
    left = np.zeros(len(values))
    for lines in groups(families):
        known = np.column_stack([np.ones(len(lines)), *(ranks(column[lines]) for column in five.T)])
        own = ranks(values[lines])
        left[lines] = own - known @ np.linalg.lstsq(known, own, rcond=None)[0]
    return left


def published(folder: Path) -> tuple[list[str], dict[str, Sample]]:
    """The names of all columns, the five first; for each tool its sample."""
    known = profiles(folder)
    names = [*(symbol(name) for name in COMPONENTS), *DISCARDED, *PRODUCTS]
    rows: dict[str, list[tuple[str, list[float], bool]]] = defaultdict(list)
    for run in results(folder, *ROBUST):
        profile = known.get((run["benchmark"], run["instance"]))
        if profile is not None and run["status"] in ("UNSAT", "TIMEOUT"):
            is_late = run["status"] == "TIMEOUT"
            rows[run["tool"]].append((run["construction"], _values(profile), is_late))
    return names, {tool: _sample(found) for tool, found in rows.items()}


def _values(profile: Mapping[str, str]) -> list[float]:
    five = [_number(profile[column]) for column in COLUMNS.values()]
    others = [_number(profile[column]) for column in DISCARDED.values()]
    products = [_product(five[a], five[b], sign) for a, b, sign in PRODUCTS.values()]
    return [*five, *others, *products]


def _product(first: float, second: float, sign: int) -> float:
    if sign > 0:
        return first * second
    return first / second if second else math.nan


def _number(text: str) -> float:
    return float(text) if text else math.nan


def _sample(rows: Sequence[tuple[str, list[float], bool]]) -> Sample:
    families, values, late = zip(*rows, strict=True)
    return Sample(families, np.array(values, dtype=float), np.array(late, dtype=bool))


def table_of_discarded(folder: Path) -> list[str]:
    """For each component: what of the five it goes with, and its AUCs; then what the five leave of it."""
    names, samples = published(folder)
    tools = list(samples)
    alike = correlations(*of_all(folder))
    rows = []
    for number, name in enumerate(names):
        cells = [_told(auc_within(s.families, s.values[:, number], s.late)) for s in samples.values()]
        near, adds = "–", ["–"] * len(tools)
        if number >= len(COLUMNS):
            which = int(np.nanargmax(np.abs(alike[number, : len(COLUMNS)])))
            near = f"{names[which]} {alike[number, which]:+.2f}"
            adds = [_added(s, number) for s in samples.values()]
        rows.append([name, near, *cells, *adds])
    heads = ["component", "nearest of the five", *tools, *(f"{tool}, rest" for tool in tools)]
    return markdown_table(heads, rows, numbers=False)


def correlations(families: Sequence[str], values: Floats) -> Floats:
    """Mean rank correlations of all columns within families, weighted by their sizes.

    A family in which one of two columns does not vary says nothing of the two; NaN if none does.
    """
    count = values.shape[1]
    total, weight = np.zeros((count, count)), np.zeros((count, count))
    for lines in groups(families):
        if len(lines) < LEAST:
            continue
        own = np.column_stack([ranks(column) for column in values[lines].T])
        own -= own.mean(axis=0)
        sizes = np.sqrt((own**2).sum(axis=0))
        varies = np.outer(sizes > 0, sizes > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = own.T @ own / np.outer(sizes, sizes)
        total += np.where(varies, len(lines) * found, 0.0)
        weight += np.where(varies, len(lines), 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(total / weight)


def of_all(folder: Path) -> tuple[list[str], Floats]:
    """The constructor and the components of every published instance, whatever the tools did with it."""
    known = profiles(folder)
    runs = {(run["benchmark"], run["instance"]): run["construction"] for run in results(folder, *ROBUST)}
    expect_all(folder, runs, known, "profiles")
    return list(runs.values()), np.array([_values(known[place]) for place in runs])


def matrix(folder: Path) -> list[str]:
    """The rank correlations of all components, the five and those that the paper discarded."""
    names = [*(symbol(name) for name in COMPONENTS), *DISCARDED, *PRODUCTS]
    found = correlations(*of_all(folder))
    rows = [
        [f"{number + 1} {name}", *("–" if np.isnan(r) else f"{100 * r:+.0f}" for r in found[number])]
        for number, name in enumerate(names)
    ]
    return markdown_table(["component", *map(str, range(1, len(names) + 1))], rows)


def _added(sample: Sample, number: int) -> str:
    left = rest(sample.families, sample.values[:, number], sample.values[:, : len(COLUMNS)])
    p = p_value(sample.families, left, sample.late)
    mark = "**" if p is not None and p <= 0.05 / (len(DISCARDED) + len(PRODUCTS)) else ""
    return f"{mark}{_told(auc_within(sample.families, left, sample.late))}{mark}"


def _told(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def proof_size(runs: Sequence[Path]) -> list[str]:
    """The AUC of the five and of proof size, and the answer: a row for each verifier on each suite.

    Suites are not pooled: one that was designed to move a component would answer for all.
    """
    measured = defaultdict(list)
    for observation in dokimos.explain(dokimos.judge(list(runs)), resamples=100).observations:
        if observation.status in (Status.SOLVED, Status.TIMEOUT) and "proof_leaves" in observation.extras:
            measured[observation.verifier, observation.suite].append(observation)
    if not measured:
        return ["Nothing that was run has been profiled with `--more`.", ""]
    rows = [
        [verifier, suite, *_compared(seen)]
        for (verifier, suite), seen in sorted(measured.items(), key=lambda item: item[0][::-1])
    ]
    heads = ["verifier", "suite", "measured", "timeouts", *(symbol(name) for name in COMPONENTS), LEAVES]
    return [
        "The AUC within families of each of the five and of proof size, over the instances that were",
        "solved or timed out; bold where p is at most 0.05 (permutations within families). A proof that",
        "was not found counts as larger than every other. Last, proof size against the best of the five:",
        "how much farther from 0.5 its AUC lies, with a 95 % interval (bootstrap within families).",
        "",
        *markdown_table([*heads, f"{LEAVES} against the best of the five"], rows),
        "",
        *([ONE_BY_ONE, ""] if any(suite == "axes" for _, suite in measured) else []),
        *([CIRCULAR, ""] if any(verifier == "reference" for verifier, _ in measured) else []),
    ]


def _compared(seen: Sequence[Observation]) -> list[str]:
    """The cells of one verifier on one suite."""
    largest = max((o.extras["proof_leaves"] or 0 for o in seen), default=0)
    columns = {
        symbol(name): np.array([_finite(o.components.get(name)) for o in seen]) for name in COMPONENTS
    }
    columns[LEAVES] = np.array(
        [2 * largest + 1 if (v := o.extras["proof_leaves"]) is None else v for o in seen], dtype=float
    )
    families = [o.family for o in seen]
    late = np.array([o.status is Status.TIMEOUT for o in seen])
    found = {n: (auc_within(families, v, late), p_value(families, v, late)) for n, v in columns.items()}
    marks = ("**" if p is not None and p <= 0.05 else "" for _, p in found.values())
    aucs = (f"{mark}{_told(auc)}{mark}" for mark, (auc, _) in zip(marks, found.values(), strict=True))
    return [str(len(seen)), str(int(late.sum())), *aucs, _answer(found, columns, families, late)]


def own_matrix(runs: Sequence[Path]) -> list[str]:
    """The rank correlations of everything in our own profiles with the five and with what is certified."""
    seen = {
        (o.suite, o.instance): o
        for o in dokimos.explain(dokimos.judge(list(runs)), resamples=100).observations
        if "proof_leaves" in o.extras
    }
    if not seen:
        return []
    told = list(seen.values())
    names = [*COMPONENTS, *sorted(set.intersection(*(set(o.extras) for o in told)))]
    values = np.array([[_finite({**o.components, **o.extras}.get(name)) for name in names] for o in told])
    leaves = values[:, names.index("proof_leaves")]
    leaves[np.isnan(leaves)] = np.nanmax(leaves, initial=0) + 1
    found = correlations([o.family for o in told], values)
    shown = [names.index(name) for name in (*COMPONENTS, *(c for c in CERTIFIED if c in names))]
    rows = [
        [
            symbol(name).replace("|", "\\|"),
            *("–" if np.isnan(r) else f"{100 * r:+.0f}" for r in found[number, shown]),
        ]
        for number, name in enumerate(names)
        if not np.isnan(found[number, number])
    ]
    return [
        "## Our own components against each other",
        "",
        f"Mean rank correlation within families, times 100, over the {len(told)} instances measured with",
        "`--more`. What does not vary is left out; a proof that was not found counts as the largest, and",
        "anything else that is not known as the middle.",
        "",
        *markdown_table(["component", *(symbol(names[number]) for number in shown)], rows),
        "",
    ]


def _finite(value: float | None) -> float:
    return math.nan if value is None else min(max(value, -1e300), 1e300)


def _answer(
    found: Mapping[str, tuple[float | None, float | None]],
    columns: Mapping[str, Floats],
    families: Sequence[str],
    late: NDArray[np.bool_],
) -> str:
    """Whether proof size is farther from chance than the best of the five, by a bootstrap of instances."""
    size = {name: abs(auc - 0.5) for name, (auc, _) in found.items() if auc is not None}
    if LEAVES not in size:
        return "no answer: no family has both outcomes"
    best = max((n for n in size if n != LEAVES), key=lambda n: size[n])
    p = found[LEAVES][1]
    if p is None or p > 0.05:
        return "predicts nothing here"
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(BOOTSTRAPS):
        chosen = np.concatenate([rng.choice(lines, len(lines)) for lines in groups(families)])
        names = [families[i] for i in chosen]
        pair = [auc_within(names, columns[n][chosen], late[chosen]) for n in (LEAVES, best)]
        if pair[0] is not None and pair[1] is not None:
            gains.append(abs(pair[0] - 0.5) - abs(pair[1] - 0.5))
    low, high = np.quantile(gains, [0.025, 0.975])
    word = "better than" if low > 0 else "worse than" if high < 0 else "not measurably better than"
    return f"{word} {best}: {size[LEAVES] - size[best]:+.2f} ({low:+.2f} to {high:+.2f})"


def page(facts: Path | None, runs: Sequence[Path]) -> list[str]:
    """The page, in Markdown."""
    lines = [
        "# What else measures hardness",
        "",
        "```",
        "dokimos profile axes --more",
        "dokimos profile veristress --more",
        "dokimos run axes --verifier marabou --verifier reference --timeout 120 --cpu 10 --out runs/axes",
        "dokimos run veristress --verifier marabou --verifier vibecheck --verifier reference \\",
        "  --verifier nnenum=REPOSITORY --timeout 60 --cpu 10 --out runs/veristress",
        "dokimos-studies hardness --facts FACTS --runs runs/axes runs/veristress \\",
        "  --out studies/results/hardness.md",
        "```",
        "",
        "Everything here is within constructors: an AUC is the chance that, of a timeout and a solved",
        "instance of one constructor, the timeout has the larger value (0.5 says nothing).",
        "[The profile](../../docs/difficulty.md) defines the components.",
        "",
    ]
    if runs:
        lines += ["## Does proof size predict timeouts better than the five?", "", *proof_size(runs)]
        lines += own_matrix(runs)
    if facts is not None:
        lines += [
            "## What the paper discarded",
            "",
            "From the published profiles and answers (225 instances, five tools; timeouts and `UNSAT`).",
            "The answers of nnenum are those of [a partial run](veristress-claims.md#outcomes).",
            "*Nearest*: the one of the five with the largest mean rank correlation within constructors.",
            "*Rest*: the AUC of what the five leave of its ranks, by least squares within constructors;",
            "bold where p <= 0.05 divided by the number of components in this table beside the five",
            f"({ROUNDS} permutations within constructors, which take the 30 published duplicates for",
            "instances of their own). What adds to the five has a bold rest for several tools.",
            "",
            *table_of_discarded(facts),
            "",
            "## All components against each other",
            "",
            "Mean rank correlation within constructors, times 100, over the published profiles (225",
            "instances). Numbers stand for the components in the order of the rows.",
            "",
            *matrix(facts),
        ]
    return lines


def main() -> None:
    """Write the page, or print it."""
    parser = parser_for(__doc__)
    parser.add_argument("--facts", type=Path)
    parser.add_argument("--runs", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    if given.facts is None and not given.runs:
        parser.error("give --facts, --runs or both")
    show(page(given.facts, given.runs), given.out)
