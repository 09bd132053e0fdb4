"""What every named data set says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from dokimos.datasets.data_set import DataSet
from dokimos.datasets.packages import PackagedFile

Part = Literal["train", "test"]


@dataclass(frozen=True)
class NamedData:
    """A data set with a name: the files that it is made of, and how they become records.

    `load` gives the part to train on or the part to test on; it fetches what is not kept yet. `sizes` are
    the numbers of records in the two parts, `about` is one line for a list. Files that come with an
    installed package are not in `files`.
    """

    name: str
    about: str
    shape: tuple[int, ...]
    sizes: tuple[int, int]
    files: tuple[PackagedFile, ...]
    load: Callable[[Part], DataSet]

    @property
    def is_kept(self) -> bool:
        """Whether all files are here already."""
        return all(file.path.is_file() for file in self.files)
