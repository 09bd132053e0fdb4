"""`--json`: every command that prints a table prints it as one document, too."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dokimos as library
from dokimos import cli
from dokimos.api.models import TrainedClassifier
from dokimos.cli.app import command_line
from dokimos.cli.output import SCHEMA
from dokimos.constructions.data.brackets import Accuracy, Share
from dokimos.constructions.data.property_suites import RecordOutcome
from dokimos.laws.proving.results import LawAnswer
from dokimos.laws.repair.measures import ModelMeasures
from dokimos.laws.repair.repair import RepairedModel
from dokimos.laws.repair.repair_task import RepairWay
from tests.cli.conftest import Dokimos

CLI = Path(cli.__file__).parent
MEASURES = ModelMeasures(None, 1.0, 0, 0, 10, float("inf"), (LawAnswer.PROVEN,))
#: Commands in files that print tables, but which print none themselves.
WITHOUT = {"data get", "generate", "replay", "verifiers install", "db add", "db export"}
WITHOUT |= {"edition init", "edition run", "edition publish"}
#: What each takes, and the tables that it prints.
COMMANDS: dict[str, tuple[list[str], set[str]]] = {
    "suites": ([], {"suites"}),
    "families": ([], {"families"}),
    "data": ([], {"data"}),
    "verifiers": ([], {"verifiers"}),
    "verifiers doctor": (["reference"], {"findings"}),
    "check": (["suite"], {"labels"}),
    "label": (["suite"], {"instances"}),
    "show": (["suite/NAME", "--campaign", "run"], {"answers"}),
    "attack": (["suite", "--attack", "pgd", "--budget", "0.1s"], {"rates", "hidden"}),
    "hide": (["--assess", "suite", "--attack", "pgd", "--budget", "0.1s"], {"survivors"}),
    "watch": (["run", "--once"], {"verifiers"}),
    "judge": (["run"], {"families", "instances", "wrong_answers"}),
    "explain": (["run", "--resamples", "100"], {"separations"}),
    "gate": (["suite", "--verifier", "reference", "--out", "run"], {"findings"}),
    "audit": (["suite", "--jobs", "1"], {"findings"}),
    "profile": (["suite", "--samples", "4", "--jobs", "1"], {"profiles"}),
    "train": (["digits-fc", "--out", "nets"], {"networks"}),
    "properties pgd": (
        ["--model", "n.onnx", "--data", "d", "--out", "o", "--epsilon", "1/9"],
        {"records"},
    ),
    "properties radius": (
        ["--model", "n.onnx", "--data", "d", "--out", "o", "--epsilon", "1/9"],
        {"records"},
    ),
    "properties oval": (["--model", "n.onnx", "--data", "d", "--out", "o"], {"records"}),
    "db find": ([], {"labels"}),
    "edition score": (["cup"], {"ranking", "scores"}),
    "hunt": (["--verifier", "planted=ideal", "--budget", "1s", "--out", "found"], set()),
    "reduce": (["suite/NAME", "--verifier", "planted=swapped-words", "--out", "small"], {"reduced"}),
    "law repair": (["laws", "--model", "n.onnx", "--out", "o.onnx"], {"trainings"}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite of two instances, and a campaign on it."""
    folder = tmp_path_factory.mktemp("json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOKIMOS_HOME", str(folder / "home"))
        library.generate(
            out=folder / "suite", family="exclusive-pairs", knobs={"pairs": "2", "inputs": "4"}
        )
        library.run(folder / "suite", "reference", out=folder / "run")
        library.init_edition(folder / "cup", [folder / "suite"], ["mine=planted=ideal"])
        library.run_edition(folder / "cup")
    return folder


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What trains networks is not run; what it would come to is made up."""
    suite = SimpleNamespace(folder=Path("o"))
    record = RecordOutcome("7", (("i0", "unsat"),), proven=0.1, broken=float("inf"))
    property_suite = SimpleNamespace(
        suite=suite, records=(record,), timeout_seconds=30.0, labels={"unsat": 1}
    )
    share = Share(1, 2)
    trained = TrainedClassifier(Path("nets/n.onnx"), 3, 2, 0.1, Accuracy(share, share, share))
    repaired = (RepairedModel(b"", MEASURES, MEASURES, seed=0, way=RepairWay.WEIGHTS),)
    monkeypatch.setattr(library, "make_properties", lambda *_, **__: property_suite, raising=False)
    monkeypatch.setattr(library, "train_model", lambda *_, **__: trained, raising=False)
    monkeypatch.setattr(library, "repair_law", lambda *_, **__: repaired, raising=False)


def _commands(group: Any, words: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        path = f"{words} {name}".strip()
        if hasattr(command, "commands"):
            if command.invoke_without_command:
                yield path, command
            yield from _commands(command, path)
        else:
            yield path, command


def _takes_json(command: Any) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


def test_every_command_that_prints_a_table_takes_json() -> None:
    found = dict(_commands(command_line()))
    tables = ("rich.table", "terminal_tables")
    printing = {p.stem for p in CLI.glob("*.py") if any(table in p.read_text() for table in tables)}
    printing -= {"output"}
    lacking = [
        name
        for name, command in found.items()
        if command.callback.__module__.rpartition(".")[2] in printing and not _takes_json(command)
    ]
    assert sorted(lacking) == sorted(WITHOUT)
    assert {name for name, command in found.items() if _takes_json(command)} == set(COMMANDS)


def test_every_such_command_is_in_the_reference() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text().partition("## Output as JSON")[2]
    first = " ".join(line.split("|")[1] for line in page.splitlines() if line.startswith("|"))
    assert [name for name in COMMANDS if not set(name.split()) <= set(re.findall(r"\w+", first))] == []
    assert f"| `schema` | {SCHEMA}." in page


def test_nothing_is_printed_beside_the_one_mechanism() -> None:
    calls = re.compile(r"\bconsole\(\)\.print|json\.dumps")
    beside = [path.name for path in CLI.glob("*.py") if calls.search(path.read_text())]
    assert sorted(beside) == ["output.py"]


@pytest.mark.usefixtures("_quick")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_document(command: str, dokimos: Dokimos, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made)
    name = json.loads((made / "suite" / "suite.json").read_text())["families"]
    words, tables = COMMANDS[command]
    ran = dokimos(*command.split(), *(word.replace("NAME", min(name)) for word in words), "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert (document["schema"], document["command"]) == (SCHEMA, command)
    assert tables <= set(document["tables"])
    for rows in document["tables"].values():
        assert isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    assert all(isinstance(line, str) for line in document["lines"])
    assert any(document["tables"].values()) or document["lines"]


def test_a_document_comes_with_a_failing_exit_code(dokimos: Dokimos, made: Path, tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    shutil.copytree(made / "suite", suite)
    truth = min((suite / "truth").iterdir())
    truth.write_text(truth.read_text().replace('"sha256"', '"sha257"').replace("[", "[ ", 1)[:-5])
    ran = dokimos("check", suite, "--json")
    assert ran.code == 2
    labels = json.loads(ran.out)["tables"]["labels"]
    assert [bool(row["problem"]) for row in sorted(labels, key=lambda row: row["name"])].count(True) == 1


def test_a_command_that_fails_prints_no_document(dokimos: Dokimos) -> None:
    ran = dokimos("families", "nope", "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("dokimos: Unknown family 'nope'")


def test_a_campaign_cannot_be_watched_in_one_document(dokimos: Dokimos, made: Path) -> None:
    ran = dokimos("watch", made / "run", "--json")
    assert (ran.code, ran.out) == (2, "") and "--once" in ran.err
