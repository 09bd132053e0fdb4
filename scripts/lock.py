"""Write requirements/*.txt: the exact versions that a clean environment gets from pyproject.toml today."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = {
    "base": ("gradients",),  # what `make demo` needs
    "dev": (
        "dev",
        "benchexec",
        "cluster",
        "data",
        "docs",
        "gradients",
        "png",
        "studies:lander",
        "studies:reviews",
        "studies:speech",
    ),
}


def wanted(extras: tuple[str, ...]) -> list[str]:
    """What pyproject.toml asks for, with these extras; FOLDER:EXTRA is one of FOLDER/pyproject.toml."""
    requirements: list[str] = list(_project("")["dependencies"])
    for extra in extras:
        folder, _, name = extra.rpartition(":")
        requirements += _project(folder)["optional-dependencies"][name]
    return requirements


def _project(folder: str) -> dict[str, Any]:
    text = (ROOT / folder / "pyproject.toml").read_text(encoding="utf-8")
    found: dict[str, Any] = tomllib.loads(text)["project"]
    return found


def frozen(requirements: list[str], *, agreeing_with: str = "") -> str:
    """The versions installed in a clean environment, without local tags such as `+cpu`."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        constraints = Path(folder) / "constraints.txt"
        constraints.write_text(agreeing_with, encoding="utf-8")
        pip = [str(Path(folder) / "bin" / "pip"), "--disable-pip-version-check"]
        install = ["install", "--quiet", "--constraint", str(constraints), *requirements]
        subprocess.run([*pip, *install], check=True)
        listed = subprocess.run([*pip, "freeze"], check=True, capture_output=True, text=True).stdout
    return re.sub(r"(==[^+\s]+)\+\S+", r"\1", listed)


def main() -> int:
    """Lock the base first; the development versions agree with it."""
    base = frozen(wanted(EXTRAS["base"]))
    development = frozen(wanted(EXTRAS["dev"]), agreeing_with=base)
    folder = ROOT / "requirements"
    folder.mkdir(exist_ok=True)
    (folder / "base.txt").write_text(base, encoding="utf-8")
    (folder / "dev.txt").write_text(development, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
