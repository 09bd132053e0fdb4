"""What the paper on Nomos reports of its case studies, to be put beside our own counts.

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

#: How many seeds, and tests with each: the paper's, but for the game, which a test plays 20 times.
_EFFORTS = {"lunar_lander": (3, 200)}
_EFFORT = (10, 5000)


def published(domain: str, model: str) -> Published | None:
    """What the paper says of a domain and a kind of model, None where it says nothing."""
    return _ROWS.get((domain, model))


def effort(domain: str) -> tuple[int, int]:
    """Seeds and tests of each law with each seed."""
    return _EFFORTS.get(domain, _EFFORT)
