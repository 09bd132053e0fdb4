"""The description of a named data set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dokimos.datasets.data_set import DataSet
from dokimos.datasets.packages import PackagedFile

Part = Literal["train", "test"]


@dataclass(frozen=True)
class NamedData:
    """A data set with a name: its files, and how to make records from them.

    `load` returns the part to train on or the part to test on, and fetches files that are not kept yet.
    `sizes` are the numbers of records in the two parts; `about` is a one-line description. Files that come
    with an installed package are not in `files`.
    """

    name: str
    about: str
    shape: tuple[int, ...]
    sizes: tuple[int, int]
    files: tuple[PackagedFile, ...]
    load: Callable[[Part], DataSet]

    @property
    def is_kept(self) -> bool:
        """Whether all files are on this machine already."""
        return all(file.path.is_file() for file in self.files)
