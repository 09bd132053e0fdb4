"""Data sets by name, and the user's data by path: every --data argument is interpreted here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from dokimos.core.errors import InputError
from dokimos.core.registry import unknown_name
from dokimos.datasets.data_set import DataSet
from dokimos.datasets.normalisation import NONE, Normalisation
from dokimos.datasets.own_files import Limits, read_csv, read_npz, read_picture_folder
from dokimos.datasets.recovery import read_boxes
from dokimos.datasets.sources.base import NamedData, Part

NAMES = ("mnist", "cifar10", "digits", "german", "compas")


def named_data(name: str) -> NamedData:
    """The data set with this name. Raises InputError if there is none."""
    if name not in NAMES:
        raise unknown_name("data set", name, list(NAMES))
    data: NamedData = import_module(f"dokimos.datasets.sources.{name}").DATA
    return data


def load_data(
    where: str | Path,
    *,
    part: Part = "test",
    shape: tuple[int, ...] | None = None,
    limits: Limits = (0.0, 1.0),
    normalisation: Normalisation = NONE,
) -> DataSet:
    """Load the data set of this name, or the records in the user's file or folder.

    `part` selects from data that has parts. `shape`, `limits` and `normalisation` are for the user's data:
    the shape of the pictures in .vnnlib boxes, the range of values, and how boxes were normalised. Raises
    InputError if there is no such data, or it cannot be read.
    """
    if str(where) in NAMES:
        return named_data(str(where)).load(part)
    path = Path(where)
    if not path.exists():
        raise InputError(
            f"{path}: there is no such file, folder or data set; data sets by name are {', '.join(NAMES)}, "
            "files are .npz, .csv or .vnnlib, folders have .vnnlib files, or a folder for each class."
        )
    if path.suffix == ".npz":
        return read_npz(path, limits)
    if path.suffix == ".csv":
        return read_csv(path, limits)
    if path.name.removesuffix(".gz").endswith(".vnnlib") or (
        path.is_dir() and next(path.rglob("*.vnnlib*"), None)
    ):
        return read_boxes(path, shape, normalisation)
    if path.is_dir():
        return read_picture_folder(path, limits)
    raise InputError(f"{path}: data must be .npz, .csv or .vnnlib, or a folder; convert it to one of them.")
