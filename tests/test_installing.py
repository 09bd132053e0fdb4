"""Dokimos as others install it: a wheel that has all it needs, and what it does in a clean environment."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "dokimos"
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
NO_INDEX = ("No matching distribution", "Could not find a version", "Failed to establish")


def ran(folder: Path, *command: object) -> str:
    """What a command prints, which must succeed; it sees nothing of this environment's packages."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=kept | {"DOKIMOS_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and any(words in done.stderr for words in NO_INDEX):
        pytest.skip("pip reaches no index of packages here")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, as the build backend is: from an index, where pip finds one."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(SOURCE, source / "src" / "dokimos", ignore=shutil.ignore_patterns("__pycache__"))
    ran(folder, sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", folder, source)
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    listed = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        f"dokimos/{path.relative_to(SOURCE).as_posix()}" for path in SOURCE.rglob("*") if path.is_file()
    }
    assert {name for name in ours if "__pycache__" not in name} <= listed
    assert not [name for name in listed if name.startswith(("tests/", "docs/"))]


@pytest.mark.slow
def test_it_works_in_a_clean_environment_with_its_declared_dependencies(
    wheel: Path, tmp_path: Path
) -> None:
    """Nothing but what the wheel declares is installed: a forgotten dependency shows here."""
    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    dokimos = tmp_path / "clean" / "bin" / "dokimos"
    ran(tmp_path, python, *PIP, "install", wheel)
    where = ran(tmp_path, python, "-c", "import dokimos; print(dokimos.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path / "clean")
    assert "exclusive-pairs" in ran(tmp_path, dokimos, "families")
    knobs = ("--inputs", 20, "--pairs", 2, "--seed", 1)
    ran(tmp_path, dokimos, "generate", "exclusive-pairs", *knobs, "--out", "pairs")
    assert "2 of 2 labels proven" in ran(tmp_path, dokimos, "check", "pairs")
    ran(tmp_path, dokimos, "run", "pairs", "--verifier", "reference", "--out", "run")
    assert "No wrong answers" in ran(tmp_path, dokimos, "judge", "run")
    ran(tmp_path, dokimos, "report", "run", "--html", "report.html")
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["base", "dev"])
def test_the_list_of_versions_has_all_that_is_asked_for(name: str) -> None:
    lock = runpy.run_path(str(ROOT / "scripts" / "lock.py"))
    asked = {_package(each) for each in lock["wanted"](lock["EXTRAS"][name])}
    lines = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert asked <= {_package(line) for line in lines}


def test_the_demo_has_the_extra_that_its_profiles_need() -> None:
    assert "$(call dokimos,profile" in (ROOT / "Makefile").read_text(encoding="utf-8")
    lock = runpy.run_path(str(ROOT / "scripts" / "lock.py"))
    assert "gradients" in lock["EXTRAS"]["base"]


def _package(requirement: str) -> str:
    """The name in a requirement, as an index has it."""
    return re.split(r"[\[<>=~! ;]", requirement, maxsplit=1)[0].replace("_", "-").lower()
