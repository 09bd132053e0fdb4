"""The rooms of laws: imports point one way, and nothing needs the examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.test_imports import FILES, SOURCE, _imports, _module

#: What a room may import: itself, and what stands to the left.
ROOMS = (
    "domain",
    "language",
    "models",
    "engine",
    "law_sources",
    "proving",
    "conversion",
    "repair",
    "reporting",
    "pytest_plugin",
    "examples",
)
LAWS = [path for path in FILES if path.is_relative_to(SOURCE / "laws")]
EXAMPLES = "dokimos.laws.examples"


def _room(module: str) -> str:
    """The room of `dokimos.laws.<room>...`, empty for anything else."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["dokimos", "laws"] and len(parts) > 2 else ""


def test_every_room_has_its_place_in_the_order() -> None:
    assert {_room(_module(path)) for path in LAWS} - {""} == set(ROOMS)


def test_imports_point_to_the_left() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}: {here} may not import {name}"
        for path in LAWS
        if (here := _room(_module(path)))
        for line, name in _imports(path)
        if (there := _room(name)) and ROOMS.index(there) > ROOMS.index(here)
    ]
    assert wrong == []


def test_nothing_else_imports_the_examples() -> None:
    outside = [path for path in FILES if not path.is_relative_to(SOURCE / "laws" / "examples")]
    users = {
        path.stem
        for path in outside
        for _, name in _imports(path)
        if name == EXAMPLES or name.startswith(f"{EXAMPLES}.")
    }
    assert users == set()


def _loaded(arguments: list[str], folder: Path) -> tuple[str, list[str]]:
    """What `dokimos <arguments>` prints, and which modules of the examples it loads."""
    script = (
        f"import sys\nfrom dokimos.__main__ import main\nsys.argv[1:] = {arguments!r}\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        f"print('loaded', *[name for name in sys.modules if name.startswith({EXAMPLES!r})])\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    *said, loaded = done.stdout.splitlines()
    return "\n".join(said), loaded.split()[1:]


def test_ones_own_law_loads_no_example(tmp_path: Path) -> None:
    (tmp_path / "people.py").write_text(
        "from dokimos.laws import integer\n"
        "FEATURES = [integer('age', 0, 9)]\n"
        "def inputs():\n    return [[age] for age in range(10)]\n"
        "def model():\n    return lambda record: int(record[0] > 4)\n"
    )
    (tmp_path / "older.law").write_text(
        "import people;\ninput x1;\nvar x2 := x1[age := x1.age + randInt(1, 3)];\n"
        "output d1;\noutput d2;\n{\n    d1 = predict(x1)\n    d2 = predict(x2)\n}\nensures d1 <= d2;\n"
    )
    said, loaded = _loaded(["law", "test", "older.law", "--out", "found", "--html", "page.html"], tmp_path)
    assert "holds for every draw" in said and (tmp_path / "page.html").is_file()
    assert loaded == []


def test_a_shipped_law_loads_its_own_domain_only(tmp_path: Path) -> None:
    said, loaded = _loaded(["law", "lint", "compas"], tmp_path)
    assert "compas/priors_inc: fine" in said
    assert {name.rpartition(".")[2] for name in loaded} == {"examples", "catalogue", "compas", "training"}
