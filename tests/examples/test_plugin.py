"""The example of a plug-in: built as a wheel, installed into an environment of its own, and used there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from tests.cli.forks import Forks

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")


def environment(**variables: str) -> dict[str, str]:
    """Ours with these, but where we find packages."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables


def ran(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command, which must succeed."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def backend_is_at_hand() -> bool:
    """Whether setuptools is there, and makes wheels by itself."""
    try:
        return int(version("setuptools").split(".")[0]) > 70
    except PackageNotFoundError:
        return False


def build_wheel(folder: Path) -> Path:
    """The wheel; without the network where the build backend is at hand."""
    source = folder / "source"
    shutil.copytree(PLUGIN, source)
    offline = ("--no-build-isolation", "--no-index") if backend_is_at_hand() else ()
    ran(*PIP, "wheel", "--no-deps", *offline, "--wheel-dir", folder, source, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path) -> Path:
    """The interpreter of an environment that has all that we have, and the wheel."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
    standard = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    ours = [
        p
        for p in sys.path
        if Path(p).is_dir() and not (p.startswith(standard) and "site-packages" not in p)
    ]
    (packages / "ours.pth").write_text("\n".join(ours) + "\n", encoding="utf-8")
    ran(*PIP, "install", "--no-deps", "--no-index", "--target", packages, wheel, cwd=folder)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    return make_environment(folder / "environment", build_wheel(folder))


def test_it_is_listed_made_proven_run_and_judged(python: Path, tmp_path: Path) -> None:
    with Forks(tmp_path, environment(DOKIMOS_HOME=str(tmp_path)), python=python) as forks:
        look_at_all(forks)


def look_at_all(forks: Forks) -> None:
    def dokimos(*words: object) -> str:
        done = forks.run(*words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "one ReLU that wakes up near one corner of many" in dokimos("families")
    assert "how far from its corner" in dokimos("families", "lone-hinge")
    dokimos("generate", "lone-hinge", "--count", 2, "--inputs", 16, "--out", "hinges")
    assert "4 of 4 labels proven" in dokimos("check", "hinges")
    assert "4 of 4 labels proven" in dokimos("check", "hinges", "--core-only")
    assert "corner-search" in dokimos("verifiers")
    assert "corner-search can be run" in dokimos("verifiers", "doctor", "corner-search")
    dokimos("run", "hinges", "--verifier", "corner-search", "--out", "run")
    assert "corner-search" in dokimos("judge", "run")


def test_it_keeps_to_the_contracts(python: Path) -> None:
    done = ran(
        python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=python.parents[2] / "source"
    )
    assert "failed" not in done.stdout
    assert "passed" in done.stdout


def test_without_it_nothing_of_it_is_there(tmp_path: Path) -> None:
    assert "lone-hinge" not in ran(sys.executable, "-m", "dokimos", "families", cwd=tmp_path).stdout
