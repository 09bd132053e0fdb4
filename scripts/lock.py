"""Write what is installed, to the byte: versions, and the hashes of all their wheels.

requirements/*.txt are what pyproject.toml asks for today; what `dokimos verifiers install` installs gets
its hashes in src/dokimos/verifiers/hashes.txt. Nothing is installed here; uv looks it up where pip would.
Versions change only where they must, unless `--upgrade` is given.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = {
    "core": (),  # what the action needs
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
#: What torch needs beside it where it is built for GPUs, in a list of its own: not every build does.
_FOR_GPUS = re.compile(r"(nvidia|cuda|triton)\b")
#: What hatchling needs to install a folder that is edited.
_EDITABLE = "editables>=0.5"
_PYTHON = "3.11"
Hashes = Mapping[str, tuple[str, ...]]
"""NAME==VERSION, and the hashes of its files."""


def wanted(extras: tuple[str, ...]) -> list[str]:
    """What pyproject.toml asks for, with these extras, and what builds it.

    FOLDER:EXTRA is an extra of FOLDER/pyproject.toml.
    """
    ours = _read("")
    requirements: list[str] = [
        *ours["project"]["dependencies"],
        *ours["build-system"]["requires"],
        _EDITABLE,
    ]
    for extra in extras:
        folder, _, name = extra.rpartition(":")
        requirements += _read(folder)["project"]["optional-dependencies"][name]
    return requirements


def _read(folder: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))


def locked(requirements: Iterable[str], *options: str, before: str = "", here: bool = True) -> Hashes:
    """The versions that are chosen, those in `before` if they still fit, with hashes.

    `here`: by all settings of pip, otherwise by its index alone.
    """
    with tempfile.TemporaryDirectory() as name:
        asked, out = Path(name, "asked.in"), Path(name, "out.txt")
        asked.write_text("\n".join(requirements), encoding="utf-8")
        out.write_text(before, encoding="utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
        command += ["--generate-hashes", "--only-binary", ":all:", "--python-version", _PYTHON, *options]
        variables = {**os.environ, **(_settings() if here else {})}
        subprocess.run([*command, "--output-file", out, asked], check=True, env=variables)
        lines = out.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        pin, *hashes = shlex.split(line)
        found[pin] = tuple(sorted(hashes))
    return found


def _settings() -> dict[str, str]:
    """The settings of pip as variables for uv."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], check=True, capture_output=True, text=True
    )
    given = dict(line.split("=", 1) for line in sorted(listed.stdout.splitlines(), reverse=True))
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_EXTRA_INDEX_URL",
        "find-links": "UV_FIND_LINKS",
    }
    settings = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # the best of all, as pip does
    for key, value in given.items():
        if variable := names.get(key.rpartition(".")[2]):
            settings[variable] = value.strip("'").replace("\\n", " ")
    return settings


def with_public(found: Hashes) -> Hashes:
    """Without local tags such as `+cpu`, and there with the hashes of what others find, too."""
    merged = dict(found)
    for pin in [pin for pin in found if "+" in pin]:
        public = pin.partition("+")[0]
        others = locked([public], "--no-deps", here=False)[public]
        merged[public] = tuple(sorted({*merged.pop(pin), _hash(pin), *others}))
    return merged


def _hash(pin: str) -> str:
    """The hash of the wheel that pip takes here; uv tells none for a wheel in a folder."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
        ]
        subprocess.run([*command, "--dest", folder, pin], check=True)
        (wheel,) = Path(folder).iterdir()
        with wheel.open("rb") as file:
            return f"--hash=sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def written(found: Hashes) -> str:
    """A line for each package, as pip reads it."""
    lines = [
        " ".join((pin, *hashes)) for pin, hashes in sorted(found.items(), key=lambda item: item[0].lower())
    ]
    return "\n".join(lines) + "\n"


def environments() -> list[tuple[str, ...]]:
    """What each verifier's own environment has."""
    from dokimos.verifiers.catalogue import VERIFIERS
    from dokimos.verifiers.environments import PinnedVerifier

    verifiers = [VERIFIERS[name] for name in VERIFIERS]
    return [each.environment.requirements for each in verifiers if isinstance(each, PinnedVerifier)]


def _before(now: Path, asked: list[str]) -> str:
    """The list as it is, without what has only one version: of that there may be another build here."""
    if "--upgrade" in sys.argv or not now.exists():
        return ""
    exact = tuple(each for each in asked if "==" in each)
    lines = now.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(exact))


def main() -> int:
    """Lock the base first; the development versions agree with it, and the core is a part of it."""
    folder = ROOT / "requirements"
    chosen: dict[str, Hashes] = {}
    agreed: list[str] = []
    for name in ("base", "dev", "core"):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as constraints:
            constraints.write("\n".join(agreed))
            constraints.flush()
            asked = wanted(EXTRAS[name])
            before = _before(folder / f"{name}.txt", asked)
            chosen[name] = with_public(locked(asked, "--constraint", constraints.name, before=before))
        agreed = agreed or list(chosen["base"])
    elsewhere = locked([pin for pin in chosen["base"] if pin.startswith("torch==")], here=False)
    chosen["uv"] = locked(["uv"])  # which installs the others quickly
    chosen["gpu"] = {pin: hashes for pin, hashes in elsewhere.items() if _FOR_GPUS.match(pin)}
    for name, found in chosen.items():
        ours = {pin: hashes for pin, hashes in found.items() if name == "gpu" or not _FOR_GPUS.match(pin)}
        (folder / f"{name}.txt").write_text(written(ours), encoding="utf-8")
    pinned: dict[str, tuple[str, ...]] = {}
    for requirements in environments():
        pinned |= with_public(locked(requirements, "--no-deps"))
    (ROOT / "src/dokimos/verifiers/hashes.txt").write_text(written(pinned), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
