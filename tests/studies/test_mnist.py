"""MNIST: how its files are read, what blurring does, and (slow) the study from the package on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dokimos.constructions.data.packages import NpmFile
from dokimos.core.errors import InputError
from dokimos.laws.domain.definition import load_domain, shipped_laws
from dokimos.laws.engine.law_results import LawSettings
from dokimos.laws.engine.law_test import test_law as run_law
from dokimos.laws.examples.training import Study, relu_network, train_layers
from dokimos.laws.language.parser import read_law
from dokimos.laws.models.model_files import onnx_model
from dokimos_studies.laws.domains import mnist


def dot(row: int, column: int) -> np.ndarray:
    """A picture with one pixel of ink."""
    made = np.zeros((28, 28), dtype=np.int16)
    made[row, column] = 160
    return made.ravel()


def test_blur_goes_in_both_directions() -> None:
    blurred = mnist.blur_batch(dot(10, 12)[None]).reshape(28, 28)
    wanted = np.zeros((28, 28))
    wanted[9:12, 11:14] = [[10, 20, 10], [20, 40, 20], [10, 20, 10]]
    assert (blurred == wanted).all()


def test_blur_at_the_edge_loses_ink_and_changes_nothing_else() -> None:
    pictures = np.stack([dot(0, 0), dot(27, 27), np.full(784, 255, dtype=np.int16)])
    blurred = mnist.blur_batch(pictures.copy())
    assert blurred.dtype == pictures.dtype and blurred.shape == pictures.shape
    assert blurred[0].sum() == blurred[1].sum() == 40 + 20 + 20 + 10
    assert blurred[2].reshape(28, 28)[1:-1, 1:-1].min() == 255
    assert (blurred >= 0).all() and (blurred <= 255).all()


def test_a_record_is_a_picture() -> None:
    picture = mnist.picture(dot(3, 5))
    assert picture.dtype == np.uint8 and picture.shape == (28, 28)
    assert picture[3, 5] == 160 and picture.sum() == 160


def test_the_files_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def content(file: NpmFile) -> bytes:
        count = 3 if "train" in file.member else 2
        if "labels" in file.member:
            return bytes(8) + bytes(range(count))
        return bytes(16) + b"".join(bytes([k]) * 784 for k in range(count))

    monkeypatch.setattr(
        "dokimos.constructions.data.named_data.fetch_together",
        lambda files: [content(file) for file in files],
    )
    split = mnist._load()
    assert split.train.shape == (3, 784) and split.test.shape == (2, 784)
    assert (split.test[:, 0] == [0, 1]).all() and split.test.dtype == np.int16
    assert split.train_labels.tolist() == [0, 1, 2] and split.test_labels.tolist() == [0, 1]


def test_columns_can_be_scaled_together() -> None:
    rng = np.random.default_rng(0)
    records = rng.integers(0, 256, size=(300, 4)).astype(np.float32)
    records[:, 3] = 0  # a pixel that is never inked: scaled by itself its smallest change would be huge
    records[0, 3] = 1
    labels = (records[:, 0] > records[:, 1]).astype(np.int64)
    network = relu_network(train_layers(records, labels, hidden=(8,), epochs=30, together=True))
    model = onnx_model(network, None, name="n")
    assert (model.predict(records) == labels).mean() > 0.95
    inked = records + np.array([0, 0, 0, 60], dtype=np.float32)
    assert (model.predict(inked) == labels).mean() > 0.8


def test_a_study_may_come_with_its_split() -> None:
    records, labels = np.eye(4), np.array([0, 1, 0, 1])
    split = mnist.DataSplit(records, labels, records[:2], labels[:2])
    study = Study("s", lambda: split, hidden=(4,), epochs=200)
    assert study.split is split
    assert "100.0 % of 2 test records" in study.quality(study.train())


@pytest.mark.slow
def test_the_network_learns_and_the_law_is_violated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = load_domain("mnist")
    try:
        split = mnist.STUDY.split
    except InputError as problem:
        pytest.skip(str(problem))
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    model = onnx_model(mnist.model().read_bytes(), domain, name="mnist")
    assert (model.predict(split.test) == split.test_labels).mean() > 0.94
    (law,) = shipped_laws("mnist")
    result = run_law(read_law(law), model=model, domain=domain, settings=LawSettings(exhaustive=True))
    assert result.tested == 10_000 and result.is_exhaustive and result.is_violated and not result.failed
