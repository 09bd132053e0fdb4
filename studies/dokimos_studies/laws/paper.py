"""What the paper on Nomos reports about its case studies, to compare with our own counts.

Christakis, Eniser, Hoffmann, Singla, Wüstholz: Specifying and Testing k-Safety Properties for
Machine-Learning Models (2022), Tables 1, 3, 4 and 5, and Section 4 for the accuracies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Published:
    """One row of the paper's Table 1, and the unique violations of each law (means over seeds)."""

    quality: str
    laws: int
    violated: int
    unique: float
    unique_by_law: Mapping[str, float] = field(default_factory=dict)


_COMPAS = (
    "felony_inc",
    "felony_dec",
    "misdemeanour_inc",
    "misdemeanour_dec",
    "priors_inc",
    "priors_dec",
    "others_inc",
    "others_dec",
    "is_recid_set",
    "is_recid_unset",
    "is_violent_recid_set",
    "is_violent_recid_unset",
)
_GERMAN = (
    "credit_amount_inc",
    "credit_amount_dec",
    "credit_history_inc",
    "credit_history_dec",
    "employment_inc",
    "employment_dec",
    "installment_rate_inc",
    "installment_rate_dec",
    "job_inc",
    "job_dec",
)


def _by_law(names: tuple[str, ...], *unique: float) -> dict[str, float]:
    return dict(zip(names, unique, strict=True))


_ROWS: dict[tuple[str, str], Published] = {
    ("compas", "network"): Published(
        "74 %", 12, 7, 960.0, _by_law(_COMPAS, 42.9, 0, 619.7, 4.0, 0.5, 0, 289.0, 3.0, 0, 0, 0.9, 0)
    ),
    ("compas", "tree"): Published(
        "72 %", 12, 6, 294.8, _by_law(_COMPAS, 3.5, 0, 0, 0, 90.0, 97.2, 91.1, 8.0, 0, 0, 5.0, 0)
    ),
    ("german_credit", "network"): Published(
        "78 %", 10, 6, 295.2, _by_law(_GERMAN, 0, 0, 78.1, 122.8, 13.5, 30.9, 0, 0, 47.9, 2.0)
    ),
    ("german_credit", "tree"): Published(
        "70 %", 10, 6, 286.9, _by_law(_GERMAN, 122.3, 75.4, 8.0, 31.2, 9.1, 40.9, 0, 0, 0, 0)
    ),
    ("mnist", "network"): Published("97 %", 1, 1, 22.4, {"blur": 22.4}),
    ("speech", "network"): Published("84 %", 1, 1, 14.2, {"white_noise": 14.2}),
    ("reviews", "network"): Published(
        "82 %", 4, 4, 3288.0, {"pos_1": 861.1, "pos_2": 876.1, "neg_1": 756.2, "neg_2": 794.6}
    ),
    ("lunar_lander", "network"): Published("reward 175", 2, 2, 3459.0, {"relax": 124.5, "unrelax": 3334.5}),
}

#: How many seeds, and tests with each: as in the paper, except for the game, which a test plays 20 times.
_EFFORTS = {"lunar_lander": (3, 200)}
_EFFORT = (10, 5000)
#: Tests of each law in the paper.
PAPER_TESTS = 5000
#: How many networks are trained, each with a different seed; and the test seeds of all but the first.
TRAININGS = 5
_FURTHER_SEEDS = {"lunar_lander": 1}
_FURTHER = 3

#: How the task differs from the paper's.
_TASKS = {
    "compas": "the same data, except the columns num_r_cases and num_vr_cases, which the registry's file "
    "lacks: they are 0. The network and the tree are trained here.",
    "german_credit": "the same data; the network and the tree are trained here.",
    "mnist": "the same pictures; the network is trained here.",
    "speech": "the words are synthesised, not spoken by people, and there are ten of them.",
    "reviews": "the paper classifies hotel reviews by the guest's own score, read by another encoder. "
    "Here reviews are composed of sentences about films, and the label says which part has more "
    "sentences. A network that counts sentences has little to get wrong when a part is deleted or grows.",
    "lunar_lander": "200 tests a seed, not 5,000, on 1,000 states that our own fuzzing finds, and a policy "
    "that was trained until it lands almost always (`dokimos-studies law-train` says how often); the "
    "paper's earns 175 on average. Where nearly every game is won there is little to lose.",
}
_MORE = "in words only in the paper; here any larger value up to the limit is as likely as any other"
_FEWER = "in words only in the paper; here any smaller value is as likely as any other"
_COLUMN = "uses the column that its text names; published with "
_SHIFTED = _COLUMN + "columns one or three places off"
_SCREENING = _COLUMN + "column 5, the days between screening and arrest"
#: How a law differs from the published one of that name.
_DIFFERENCES: dict[str, dict[str, str]] = {
    "compas": {
        **{name: _MORE if name.endswith("_inc") else _FEWER for name in _COMPAS},
        "felony_inc": "any larger number up to 20 is as likely as any other; Figure 1a adds 1 to 10",
        "is_recid_set": _SCREENING,
        "is_recid_unset": _SCREENING,
        "is_violent_recid_set": "none known; in words only in the paper",
        "is_violent_recid_unset": "none known; in words only in the paper",
        "figure_1a": "none: it is the law of Figure 1a, as printed",
    },
    "german_credit": {
        **{name: _MORE if name.endswith("_inc") else _FEWER for name in _GERMAN},
        **dict.fromkeys(("employment_inc", "employment_dec", "job_inc", "job_dec"), _SHIFTED),
    },
    "mnist": {"blur": "blurs in both directions; published in one, from top to bottom"},
    "speech": {"white_noise": "noise 10 decibels below the word; the paper does not say how loud"},
    "reviews": dict.fromkeys(("pos_1", "pos_2", "neg_1", "neg_2"), "none but the task: see above"),
    "lunar_lander": {
        "relax": "lowers the ground; published, the terrain was drawn anew",
        "unrelax": "raises the ground, unless it would reach the lander; published, it was drawn anew",
    },
}
#: Laws that ship as the paper prints them, and which law of its tables each of them is.
_PRINTED = {"compas": {"figure_1a": "felony_inc"}}


def published(domain: str, model: str) -> Published | None:
    """What the paper says about a domain and a kind of model; None if it says nothing."""
    return _ROWS.get((domain, model))


def task_difference(domain: str) -> str:
    """How the task of a domain differs from the paper's; empty if nothing is known."""
    return _TASKS.get(domain, "")


def difference(domain: str, law: str) -> str:
    """How a law differs from the published one of that name; a dash if nothing is known."""
    return _DIFFERENCES.get(domain, {}).get(law, "–")


def in_tables(domain: str, law: str) -> str:
    """The name that the paper's tables have for a law: its own, unless it ships as a figure prints it."""
    return _PRINTED.get(domain, {}).get(law, law)


def further_seeds(domain: str) -> int:
    """Test seeds of each network but the first."""
    return _FURTHER_SEEDS.get(domain, _FURTHER)


def effort(domain: str) -> tuple[int, int]:
    """Seeds and tests of each law with each seed."""
    return _EFFORTS.get(domain, _EFFORT)
