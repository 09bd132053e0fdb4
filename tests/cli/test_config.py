"""`dokimos init`, and what `run` and `gate` take from the file that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

import dokimos as library
from tests.cli.conftest import Dokimos


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("config") / "suite"
    library.generate(out=folder, family="exclusive-pairs", knobs={"pairs": "2", "inputs": "4"})
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_run_takes_what_init_wrote(dokimos: Dokimos, suite: Path, here: Path) -> None:
    ran = dokimos(
        "init",
        suite,
        "--verifier",
        "mine=reference",
        "--timeout",
        "30s",
        "--memory",
        "2GB",
        "--rules",
        "exact",
    )
    assert ran.code == 0, ran.err
    assert ran.out.splitlines() == [
        f"dokimos.toml: suites {suite}; verifiers mine",
        "now: dokimos run --out runs/first",
    ]
    ran = dokimos("run", "--out", "run")
    assert ran.code == 0, ran.err
    added = f"{suite} --verifier mine=reference --timeout 30 --memory 2GB --jobs 1"
    first, *rest = ran.err.splitlines()
    assert first == f"dokimos.toml adds: {added}"
    assert any(line.startswith("running 1/2: mine ") for line in rest)
    assert "2 of 2 planned runs recorded; now: dokimos judge run --rules exact" in ran.out
    found = library.read_campaign("run")
    assert {record.verifier for record in found.records} == {"mine"}
    assert found.manifest.limits.memory_bytes == 2_000_000_000
    gated = dokimos("gate", "--out", "gated")
    assert gated.code == 0 and gated.err.startswith(f"dokimos.toml adds: {added}\n")


def test_the_command_line_goes_before_the_file(dokimos: Dokimos, suite: Path, here: Path) -> None:
    Path("dokimos.toml").write_text(
        'suites = ["nowhere"]\n[[verifiers]]\nname = "mine"\nplace = "reference"\n'
        '[[verifiers]]\nname = "other"\nplace = "/nowhere"\n[limits]\nmemory = "1GB"\n'
    )
    ran = dokimos("run", suite, "--verifier", "mine", "--memory", "3GB", "--out", "run")
    assert ran.code == 0, ran.err
    assert ran.err.startswith("dokimos.toml adds: --verifier mine=reference\n")
    found = library.read_campaign("run")
    assert found.manifest.limits.memory_bytes == 3_000_000_000
    assert {record.verifier for record in found.records} == {"mine"}


def test_a_file_in_a_suites_folder_is_not_read(
    dokimos: Dokimos, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = '[[verifiers]]\nname = "reference"\nplace = "/bin/false"\n'
    (suite / "dokimos.toml").write_text(bad)
    try:
        monkeypatch.chdir(suite)
        ran = dokimos("run", ".", "--verifier", "reference", "--out", tmp_path / "run")
        assert ran.code == 0, ran.err
        assert ran.err.startswith("dokimos.toml: not read, because this is a suite's folder; give --config")
        assert "adds:" not in ran.err
        monkeypatch.chdir(tmp_path)
        ran = dokimos("run", suite, "--verifier", "reference", "--out", tmp_path / "run")
        assert ran.code == 0 and "dokimos.toml" not in ran.err
        ran = dokimos("run", suite, "--config", suite / "dokimos.toml", "--out", tmp_path / "other")
        assert ran.code == 2 and "adds: --verifier reference=/bin/false" in ran.err
    finally:
        (suite / "dokimos.toml").unlink()


def test_nothing_is_run_without_a_suite_or_a_verifier(dokimos: Dokimos, here: Path) -> None:
    ran = dokimos("run", "--verifier", "reference", "--out", "run")
    assert ran.code == 2 and "Name a suite (SUITE), or list it in dokimos.toml" in ran.err
    ran = dokimos("gate", "quick")
    assert ran.code == 2 and "Name a verifier (--verifier), or list it in dokimos.toml" in ran.err


def test_what_is_wrong_in_the_file_is_one_sentence(dokimos: Dokimos, here: Path) -> None:
    Path("dokimos.toml").write_text('suites = ["quick"]\n[limits]\ntimout = "1m"\n')
    ran = dokimos("run", "--verifier", "reference", "--out", "run")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "dokimos: dokimos.toml:3: Unknown key 'timout'; did you mean 'timeout'?\n"
    assert not Path("run").exists()
    assert dokimos("run", "--config", "nowhere.toml", "--out", "run").code == 2


def test_init_writes_over_nothing(dokimos: Dokimos, here: Path) -> None:
    Path("dokimos.toml").write_text("mine")
    ran = dokimos("init")
    assert ran.code == 2 and "already exists" in ran.err
    assert Path("dokimos.toml").read_text() == "mine"
    ran = dokimos("init", "--verifier", "a,b", "--out", "other.toml")
    assert ran.code == 2 and not Path("other.toml").exists()
    ran = dokimos("init", "--out", "other.toml")
    assert ran.code == 0 and "reference" in ran.out and "--config other.toml" in ran.out
    assert "scripted" not in Path("other.toml").read_text()  # its answers follow a script


def test_no_memory_is_refused(dokimos: Dokimos, suite: Path, here: Path) -> None:
    ran = dokimos("run", suite, "--verifier", "reference", "--memory", "0", "--out", "run")
    assert ran.code == 2 and "'0' is no memory at all" in ran.err
    Path("dokimos.toml").write_text("[limits]\nmemory = 0\n")
    ran = dokimos("gate", suite, "--verifier", "reference")
    assert ran.code == 2 and "dokimos.toml:2: `memory`: '0' is no memory at all" in ran.err
    assert not Path("run").exists() and not Path("gate").exists()
