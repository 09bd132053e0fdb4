"""Names from files never become code, markup or control characters in what is written and printed."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dokimos.api.editions import tool_card
from dokimos.campaigns.config_file import ConfiguredVerifier, config_text, parse_config
from dokimos.core.readable import markdown_code, markdown_text, printable, printable_json
from dokimos.core.tables import table
from dokimos.hunting.reduction import Cause
from dokimos.hunting.write_up import Reduced, issue_text
from dokimos.judging.audit.lint import sarif
from dokimos.judging.edition import EditionTool
from dokimos.judging.gate import pass_gate
from dokimos.judging.verdicts import Verdict
from dokimos.laws.domain.data_frames import Cell, CsvTable
from dokimos.laws.language.parser import parse_law
from dokimos.laws.language.templates import FirstLaws, first_laws
from dokimos.reports.edition_page import as_latex
from dokimos.reports.exports import as_junit, as_markdown
from dokimos.suites.answers import Answer
from dokimos.suites.card import Publication
from dokimos.suites.folder import LintFinding, LintSeverity
from dokimos.suites.release import citation
from dokimos.verifiers.catalogue import find
from tests.cli.conftest import Dokimos
from tests.hunting.in_process import InProcess
from tests.hunting.specimens import PROVER, hinge
from tests.judging.test_gate import judged, run

NAMES = (
    '"""\nimport os; os.abort()\n"""',
    "'''; raise SystemExit #",
    '"); import os; os.abort() #',
    'x"; { import os; os.abort() } "',
    "a\nimport os\nos.abort()",
    "a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h",
    "{feature}",
    "{x.__class__} {0} {",
    '{feature}" }{ "',
    "a\\",
    '\\"',
    "\\u0022 \\n \\N{BULLET}",
    "];} ensures true; //",
    "a | b",
    "a \\| b `c` ``d",
    "`",
    "![x](http://host.invalid/x) [y](javascript:alert(1))",
    "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "]]>&amp;-->",
    "$(touch owned) `touch owned` ; touch owned",
    "\x1b[2J\x1b]0;title\x07\x9b31m\x00",
    "\u202egnp.exe\u2066",
    "\N{GRINNING FACE}\n\N{GRINNING FACE}",
    "# %s \t &",
)
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
each_name = pytest.mark.parametrize("name", NAMES, ids=ascii)


def shape(text: str) -> str:
    """A Python module with all its strings left out: what remains is what would run."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def started(name: str, *, file: str = "people.csv") -> FirstLaws:
    """The domain and laws of a table in which columns, values and classes have this name."""
    columns: dict[str, tuple[Cell, ...]] = {
        f"sex {name}": (name, "other", name, "other"),
        name: (18, 60, 40, 30),
        f"flag {name}": (0, 1, 0, 1),
        f"target {name}": (name, "yes", "yes", name),
    }
    return first_laws(CsvTable(Path(file), columns), f"target {name}", data=f"../{file}")


@each_name
def test_a_domain_holds_names_as_strings_only(name: str) -> None:
    usual = started("plain")
    made = started(name, file=f"{name}.csv".replace("/", "-"))
    assert shape(made.text) == shape(usual.text)
    assert made.domain.isidentifier()
    values = {node.value for node in ast.walk(ast.parse(made.text)) if isinstance(node, ast.Constant)}
    assert {name, f"sex {name}", f"flag {name}", f"target {name}"} <= values


@each_name
def test_a_law_holds_names_as_strings_only(name: str) -> None:
    usual, made = started("a b"), started(name)
    assert len(made.laws) == len(usual.laws) == 3
    for text, plain in zip(made.laws.values(), usual.laws.values(), strict=True):
        law, known = parse_law(text), parse_law(plain)
        assert law.block == known.block
        assert re.sub(r'"(?:[^"\\]|\\.)*"', "S", text.partition("\n")[2]) == re.sub(
            r'"[^"]*"', "S", plain.partition("\n")[2]
        )
        assert not UNSEEN.search(text)


@each_name
def test_a_configuration_gives_back_what_was_written(name: str) -> None:
    text = config_text([f"./{name}"], [ConfiguredVerifier("mine", name)])
    read = parse_config(text, Path("dokimos.toml"))
    assert [Path(suite) for suite in read.suites] == [Path(name)]
    assert [(one.name, one.place) for one in read.verifiers] == [("mine", name)]


@each_name
def test_a_citation_gives_back_what_was_written(name: str) -> None:
    yaml = pytest.importorskip("yaml")
    published = Publication(title=name, authors=(name,), licence=name, version=name, date="2026-01-31")
    read = yaml.safe_load(citation(published))
    assert (read["title"], read["authors"], read["version"]) == (name, [{"name": name}], name)


def shown_in(markdown: str) -> tuple[set[str], str]:
    """The kinds of what a text in Markdown becomes, and all of its words."""
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    tokens = [inner for token in parser.parse(markdown) for inner in (token, *(token.children or ()))]
    return {token.type for token in tokens}, "".join(
        token.content for token in tokens if token.type in ("text", "code_inline")
    )


@each_name
def test_markdown_shows_a_name_and_nothing_else(name: str) -> None:
    words = printable(" ".join(name.split()))
    kinds, said = shown_in(f"| a | b |\n|---|---|\n| x {markdown_text(name)} | {name and 'end'} |\n")
    assert not kinds & {"link_open", "image", "html_inline", "html_block"}
    assert said.endswith("end")
    kinds, said = shown_in(f"- {markdown_code(name)} end")
    assert kinds >= {"code_inline"}
    assert said == f"{words} end"
    summary = as_markdown(pass_gate(judged(run(name, Verdict.WRONG_SAT, verifier=name))))
    kinds, _ = shown_in(summary)
    assert not kinds & {"link_open", "image", "html_inline", "html_block"}
    assert not UNSEEN.search(summary)


@each_name
def test_the_card_of_a_tool_shows_a_name_and_nothing_else(name: str) -> None:
    tool = EditionTool(name, name, name, name, name)
    kinds, said = shown_in(tool_card(tool, find("reference")))
    assert not kinds & {"link_open", "image", "html_inline", "html_block", "fence", "code_block"}
    assert "limitations" in said
    assert not UNSEEN.search(tool_card(tool, find("reference")))


@each_name
def test_a_table_in_latex_holds_names_as_text_only(name: str) -> None:
    usual, made = (as_latex(table("t", [one, "b"], [[one, "x"]])) for one in ("plain", name))
    assert len(made.splitlines()) == len(usual.splitlines())
    assert not UNSEEN.search(made)
    (cell, other), (_, again) = (made.splitlines()[k].removesuffix(r" \\").split(" & ") for k in (2, 4))
    assert (other, again) == ("b", "x")
    assert not re.search(r"[\\&%$#_{}~^]", re.sub(r"\\(?:[&%$#_{}]|text[a-z]+\{\})", "", cell))


@each_name
def test_the_text_of_an_issue_cannot_be_written_by_a_file_or_a_tool(name: str) -> None:
    specimen = hinge(2)
    labelled = PROVER.proven(specimen)
    assert labelled is not None
    cold = replace(InProcess("ideal").ask(labelled), answer=Answer.ERROR, detail=f"```\n{name}\n```")
    fenced = f"; ```\n# {name}\n; ~~~\n"
    made = Reduced(
        specimen=replace(specimen, text=f"{fenced}{specimen.property_text}"),
        labelled=labelled,
        cause=Cause("mine", f"crash: {name}", (name,), ("Relu",), 0, False, ""),
        margin=Fraction(1),
        cold=cold,
        before=9,
        asked=1,
        cpu_seconds=1.0,
        own_answer=f"```\n![x](http://host.invalid)\n{name}",
    )
    kinds, said = shown_in(issue_text(made))
    assert not kinds & {"link_open", "image", "html_inline", "html_block", "code_block"}
    assert said.count("How to reproduce") == 1 and "made neutral" in said
    assert not UNSEEN.search(issue_text(made))


@each_name
def test_junit_and_sarif_are_read_again(name: str) -> None:
    junit = as_junit(pass_gate(judged(run(name, Verdict.WRONG_SAT, verifier=name))))
    case = next(ElementTree.fromstring(junit).iter("testcase"))
    assert (case.get("name") or "").split() == printable(name).split()
    finding = LintFinding("rule", LintSeverity.ERROR, f"vnnlib/{name}", 1, name, name)
    result = json.loads(sarif([finding]))["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert re.fullmatch(r"[A-Za-z0-9_.~/%-]+", place)
    assert result["message"]["text"] == f"{name}; {name}."


@each_name
def test_a_document_keeps_its_values_and_shows_none_of_the_unseen(name: str) -> None:
    shown = printable_json(json.dumps({"name": name}, ensure_ascii=False))
    assert json.loads(shown) == {"name": name}
    assert not UNSEEN.search(shown)
    assert not UNSEEN.search(printable(name))


@each_name
def test_no_message_controls_the_terminal(name: str, dokimos: Dokimos, tmp_path: Path) -> None:
    place = tmp_path / f"x{name}".replace("/", "-").replace("\0", "")
    place.mkdir()
    (place / "instances.csv").write_text(f"{name},{name},1\n", newline="")
    (place / "a.law").write_text(f"input x1; {name}", newline="")
    for words in (("check", place), ("audit", place), ("law", "check", place / "a.law"), ("show", place)):
        ran = dokimos(*words)
        assert ran.code in (0, 1, 2), ran.err
        assert not UNSEEN.search(ran.out + ran.err)


def test_tables_on_a_terminal_show_what_they_cannot_obey() -> None:
    from io import StringIO

    from rich.table import Table

    from dokimos.cli.output import _filtered

    table = Table(title="\x1b]0;t\x07")
    table.add_column("\x9bname")
    table.add_row("\x1b[2J\u202eb")
    written = StringIO()
    _filtered()(file=written, force_terminal=True, color_system="truecolor").print(table, style="red")
    said = re.sub(r"\x1b\[[0-9;]*m", "", written.getvalue())
    assert "\x1b[" in written.getvalue()
    assert not UNSEEN.search(said)


def test_everything_is_printed_through_the_filter() -> None:
    """Only what takes no text from files may print by itself."""
    source = Path(__file__).parents[2] / "src" / "dokimos" / "cli"
    prints = re.compile(r"(?:typer\.echo|\bprint|Console|secho)\(")
    own = {"__init__.py", "output.py", "app.py", "options.py"}
    others = [path for path in source.rglob("*.py") if path.name not in own]
    assert [path.name for path in others if prints.search(path.read_text(encoding="utf-8"))] == []
