"""Dokimos as others install it: wheel and sdist have all they need, and work in an empty environment."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "dokimos"
NO_INDEX = ("No matching distribution", "Could not find a version", "Failed to establish")


def ran(folder: Path, *command: object, **variables: str) -> str:
    """What a command prints, which must succeed; it sees nothing of this environment's packages."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=kept | {"DOKIMOS_HOME": str(folder / "home")} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the steps "Build" and "Try …" of a release leave behind, in a copy of it all: `source/dist/`,
    `empty/` (the environment of what was tried last), and what the trial printed."""
    folder = tmp_path_factory.mktemp("release")
    left_out = shutil.ignore_patterns(
        ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "build", "dist"
    )
    shutil.copytree(ROOT, folder / "source", ignore=left_out)
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["build"]["steps"]
    scripts = {step["name"]: step["run"] for step in steps if "name" in step}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    step = ("bash", "-eo", "pipefail", "-c")
    try:
        ran(folder / "source", *step, scripts["Build"], PATH=path)
    except AssertionError as failed:  # it needs the build backend; whoever gets that gets the rest
        if any(words in str(failed) for words in NO_INDEX):
            pytest.skip("pip reaches no index of packages here")
        raise
    trial = scripts["Try each in an empty environment"]
    printed = ran(folder / "source", *step, trial, PATH=path, RUNNER_TEMP=str(folder))
    (folder / "printed").write_text(printed, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_wheel_and_sdist_install_and_prove_a_suite_in_an_empty_environment(released: Path) -> None:
    assert sorted(path.suffix for path in (released / "source" / "dist").iterdir()) == [".gz", ".whl"]
    proven = re.findall(r"^(\d+) of \1 labels proven", (released / "printed").read_text(), re.MULTILINE)
    assert len(proven) == 2 and "0" not in proven


@pytest.mark.slow
def test_the_wheel_has_every_file_of_the_package(released: Path) -> None:
    (wheel,) = (released / "source" / "dist").glob("*.whl")
    listed = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        f"dokimos/{path.relative_to(SOURCE).as_posix()}" for path in SOURCE.rglob("*") if path.is_file()
    }
    assert {name for name in ours if "__pycache__" not in name} <= listed
    assert {name.split("/")[0].split("-")[0] for name in listed} == {"dokimos"}


@pytest.mark.slow
def test_it_works_in_a_clean_environment_with_its_declared_dependencies(
    released: Path, tmp_path: Path
) -> None:
    """Nothing but what the package declares is installed: a forgotten dependency shows here."""
    clean = released / "empty"
    dokimos = clean / "bin" / "dokimos"
    where = ran(tmp_path, clean / "bin" / "python", "-c", "import dokimos; print(dokimos.__file__)")
    assert Path(where.strip()).is_relative_to(clean)
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
