from __future__ import annotations

import json
from pathlib import Path

import pytest

from dokimos.cli.show import shown
from dokimos.suites.facts import COMPONENTS, Measurement, load_profile
from tests.cli.conftest import Dokimos
from tests.difficulty.inspections import dense, unit_box

HINGE = dense(([[1]], [0]), ([[1]], [1]))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    network, asked = tmp_path / "hinge.onnx", tmp_path / "above.vnnlib"
    network.write_bytes(HINGE)
    asked.write_bytes(unit_box(1, 1, "(<= Y_0 0)"))
    return network, asked


@pytest.fixture
def suite(tmp_path: Path, pair: tuple[Path, Path]) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    for path in pair:
        path.rename(folder / path.name)
    (folder / "instances.csv").write_text("hinge.onnx,above.vnnlib,60\n")
    return folder


def test_a_suite_gets_a_table_and_a_file_for_each_instance(dokimos: Dokimos, suite: Path) -> None:
    ran = dokimos("profile", suite, "--samples", 100, "--seed", 4, "--tau", 0.01, "--tau-slope", 0.2)
    assert ran.code == 0
    for word in ("M̂_min", "G_IBP", "U", "A_τ", "d_eff", "G_CROWN", "0.693"):
        assert word in ran.out
    kept = load_profile(suite / "profiles" / "hinge__above.json")
    assert kept.settings.samples == 100
    assert (kept.settings.seed, kept.settings.tau, kept.settings.tau_slope) == (4, 0.01, 0.2)
    assert kept.components["margin"].value == 1
    assert f"{suite / 'profiles'}: 1 of 1 profiles" in ran.out


def test_a_second_time_it_is_there(dokimos: Dokimos, suite: Path) -> None:
    first = dokimos("profile", suite, "--samples", 10)
    again = dokimos("profile", suite, "--samples", 10)
    assert "already measured" not in first.err
    assert "already measured" in again.err
    assert first.out == again.out


def test_one_instance_from_its_two_files(
    dokimos: Dokimos,
    pair: tuple[Path, Path],
    tmp_path: Path,
    own_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dokimos("profile", *pair, "--samples", 10).code == 0
    (kept,) = (own_home / "pairs").glob("*/hinge__above/profiles/hinge__above.json")
    document = json.loads(kept.read_text())
    assert list(document["components"]) == list(COMPONENTS)
    assert dokimos("profile", *pair, "--samples", 10, "--out", tmp_path / "other").code == 0
    assert (tmp_path / "other" / "hinge__above.json").exists()


def test_a_broken_instance_is_one_sentence_and_exit_code_2(dokimos: Dokimos, suite: Path) -> None:
    (suite / "bad.onnx").write_bytes(b"no network")
    (suite / "instances.csv").write_text("bad.onnx,above.vnnlib,60\nhinge.onnx,above.vnnlib,60\n")
    ran = dokimos("profile", suite, "--samples", 10)
    assert ran.code == 2
    assert "bad__above: " in ran.err
    assert "is not an ONNX file" in ran.err
    assert "1 of 2 profiles" in ran.out
    assert [path.name for path in (suite / "profiles").iterdir()] == ["hinge__above.json"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tau", "0"], "--tau is 0.0"),
        (["--tau-slope", "-1"], "--tau-slope is -1.0"),
        (["--eta", "nan"], "--eta is nan"),
        (["--samples", "1"], "samples"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    dokimos: Dokimos, suite: Path, words: list[str], message: str
) -> None:
    ran = dokimos("profile", suite, *words)
    assert ran.code == 2
    assert message in ran.err


def test_a_network_alone_asks_for_its_property(dokimos: Dokimos, pair: tuple[Path, Path]) -> None:
    ran = dokimos("profile", pair[0])
    assert ran.code == 2
    assert "give its property as well" in ran.err


def test_several_processes_give_the_same_bytes(dokimos: Dokimos, tmp_path: Path) -> None:
    made = dokimos("generate", "exclusive-pairs", "--inputs", 20, "--pairs", 2, "--out", tmp_path / "s")
    assert made.code == 0
    for jobs in (1, 2):
        assert dokimos("profile", tmp_path / "s", "--jobs", jobs, "--out", tmp_path / str(jobs)).code == 0
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / str(j)).iterdir()} for j in (1, 2))
    assert one == two
    assert len(one) == 2


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (Measurement(0.12345), "0.123"),
        (Measurement(1233.0), "1233"),
        (Measurement(0.0, "below resolution: every quantised gradient is 0"), "0*"),
        (Measurement(6.9078, ">= log 1000: every sample has its own class"), ">=6.91"),
        (Measurement.not_applicable("no"), "n/a"),
        (Measurement(None, "infinite: the bound of the margin is −∞"), "∞"),
        (Measurement(None, "not finite: float64 overflows at 1 of 2 samples"), "?"),
    ],
)
def test_measurements_in_few_characters(found: Measurement, text: str) -> None:
    assert shown(found) == text
