"""A classifier that properties are made for: its file, and how records are normalised for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dokimos.constructions.data.data_set import NONE, DataSet, Normalisation, Records, ball_ends
from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.strict_json import read
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.entry import read_content


@dataclass(frozen=True)
class NormalisationForm:
    """The file NAME.json next to a trained network: how records are normalised for it.

    `inside` says that the network does it itself, so boxes are in the units of the records.
    """

    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    inside: bool
    data: str = ""


@dataclass(frozen=True, eq=False)
class Classifier:
    """A network whose input is a record, with a score for each class.

    `normalisation` is applied outside the network, before it.
    """

    name: str
    content: bytes
    network: Network
    normalisation: Normalisation = NONE

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.network.output_size

    def boxes(
        self, data: DataSet, radii: Sequence[float] | NDArray[np.float64] | float
    ) -> tuple[Records, Records]:
        """Both ends of the box around each record, [n, inputs], in the units of the network's input."""
        lower, upper = ball_ends(data.records, np.asarray(radii), data.limits, self.normalisation)
        return lower.reshape(len(data), -1), upper.reshape(len(data), -1)

    def scores(self, data: DataSet) -> Records:
        """The scores of all classes, in float32, with a row for each record."""
        import torch

        from dokimos.engine.attacks.margin_pass import batch_size
        from dokimos.engine.differentiable import one_thread, to_torch

        function, at_once = to_torch(self.network, dtype=torch.float32), batch_size(self.network)
        flat = self.normalisation.apply(data.records).reshape(len(data), -1)
        with one_thread(), torch.no_grad():
            parts = [
                function(torch.from_numpy(flat[start : start + at_once])).numpy()
                for start in range(0, len(flat), at_once)
            ]
        return np.concatenate(parts).astype(np.float32)

    def is_right(self, data: DataSet) -> NDArray[np.bool_]:
        """For which records the labelled class, and no other, has the highest score."""
        scores = self.scores(data)
        own = scores[np.arange(len(data)), data.labels]
        return np.asarray((scores >= own[:, None]).sum(axis=1) == 1)

    def require_fit(self, data: DataSet) -> None:
        """Raise InputError if the records do not fit the network."""
        if np.prod(data.shape) != self.network.input_size:
            raise InputError(
                f"{data.source}: a record has the shape {data.shape}, but {self.name} reads "
                f"{self.network.input_shape}; give the data that the model was trained on."
            )
        if data.classes > self.classes:
            raise InputError(
                f"{data.source}: a label is {data.classes - 1}, but {self.name} has {self.classes} "
                "classes; give the data that the model was trained on."
            )


def read_classifier(path: Path, normalisation: Normalisation | None = None) -> Classifier:
    """Read the classifier in an ONNX file.

    Without `normalisation`, the file NAME.json next to it gives the normalisation; without that, there is
    none.
    """
    content = read_content(path)
    network = read_onnx(content, name=str(path))
    if network.output_size < 2:
        raise UnreadableFile(
            path, "has only one output, but a classifier has a score for each of several classes"
        )
    stem = path.name.removesuffix(".gz").removesuffix(".onnx")
    return Classifier(stem, content, network, normalisation or _declared(path.with_name(f"{stem}.json")))


def _declared(path: Path) -> Normalisation:
    if not path.is_file():
        return NONE
    form = read(read_content(path), NormalisationForm, file=path, what="how records are normalised")
    return NONE if form.inside else Normalisation(form.mean, form.deviation)
