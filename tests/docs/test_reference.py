"""The documentation is small, and its reference complete: verdicts, exit codes, environment, results."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from dokimos import cli
from dokimos.judging.verdicts import Verdict
from dokimos.verifiers import catalogue
from dokimos.verifiers.adapters import own_tools
from dokimos.verifiers.placed import PlacedVerifier

ROOT = Path(__file__).resolve().parents[2]
DOCS, SOURCE = ROOT / "docs", ROOT / "src" / "dokimos"
#: Which variables these read does not stand in their text; `known_by_other_means` says which they are.
INDIRECT = {"verifiers/placed.py", "verifiers/adapters/own_tools.py", "core/parallel.py"}
#: These hand the environment on, or look for what the user named, and take no variable by its name.
HANDED_ON = {
    "core/one_core.py",
    "core/parallel.py",
    "campaigns/settings.py",
    "laws/models/trial.py",
    "verifiers/environments.py",
    "verifiers/script_guard.py",
    "verifiers/runners/vnnlib2_runner.py",
}


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def manual() -> list[Path]:
    """The pages that people write: results and what is generated from the code do not count."""
    return [each for each in DOCS.rglob("*.md") if each.parent.name not in ("results", "reference")]


def test_every_page_of_the_manual_has_one_place_in_the_index() -> None:
    lists = re.findall(r":caption: (?!Results).*?\n(.*?)```", page("index.md"), re.DOTALL)
    listed = [line for each in lists for line in each.split() if line[0] != ":" and line != "1"]
    names = {each.relative_to(DOCS).with_suffix("").as_posix() for each in manual()} - {"index"}
    assert sorted(listed) == sorted(names | {"reference/commands", "reference/python"})


def is_environ(node: ast.AST) -> bool:
    is_named = isinstance(node, ast.Attribute) and node.attr == "environ"
    return is_named and ast.unparse(node) == "os.environ"


def variables_in(tree: ast.AST) -> tuple[set[str], int]:
    """The variables that a module names where it uses os.environ, and how many uses name none."""
    named: set[str] = set()
    uses = sum(is_environ(node) for node in ast.walk(tree))
    for node in ast.walk(tree):
        key: ast.AST | None = None
        if isinstance(node, ast.Subscript) and is_environ(node.value):
            key = node.slice
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and is_environ(node.func.value)
        ):
            key = node.args[0] if node.args else None
        elif isinstance(node, ast.Attribute) and node.attr == "getenv":
            uses += 1
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            named.add(key.value)
            uses -= 1
    return named, uses


def known_by_other_means() -> set[str]:
    placed = {one.variable for _, one in catalogue.VERIFIERS.items() if isinstance(one, PlacedVerifier)}
    return placed | {own_tools.CATEGORY_VARIABLE, "OMP_NUM_THREADS", "MKL_NUM_THREADS"}


def test_the_page_of_environment_variables_is_complete_and_lists_nothing_else() -> None:
    used, unnamed = known_by_other_means(), set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        is_used = "environ" in text or "getenv" in text
        named, others = variables_in(ast.parse(text)) if is_used else (set(), 0)
        used |= named | set(re.findall(r'"(DOKIMOS_[A-Z0-9_]+)"', text))
        if others:
            unnamed.add(path.relative_to(SOURCE).as_posix())
    assert unnamed == INDIRECT | HANDED_ON, "a use of os.environ that nobody has looked at"
    tables = page("verdicts.md").partition("## Environment variables")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in tables.splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == used


def test_a_use_of_the_environment_is_found() -> None:
    tree = ast.parse(
        "import os\nos.environ['A']\nos.environ.get('B')\nos.environ.get(name)\nos.getenv('C')"
    )
    assert variables_in(tree) == ({"A", "B"}, 2)


def test_every_verdict_is_in_the_table_and_has_an_example() -> None:
    text = page("verdicts.md").partition("\n## Replaying a point")[0]
    everyone = {verdict.value for verdict in Verdict}
    assert set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)) == everyone
    assert set(re.findall(r"^([\w-]+): the answer", text, re.MULTILINE)) == everyone


def test_the_page_of_exit_codes_lists_those_of_the_command_line() -> None:
    text = page("verdicts.md").partition("## Exit codes")[2].partition("\n## ")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert listed == {0, 1, 2, cli.FAULT, cli.INTERRUPTED, 141}


def test_nobody_is_told_to_install_a_package_that_is_not_published() -> None:
    """An index may have another package of this name; what is installed is a folder or a wheel."""
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "action.yml"]
    for folder, ending in (("docs", "md"), ("examples", "*"), ("src/dokimos", "py"), ("scripts", "*")):
        texts += [path for path in (ROOT / folder).rglob(f"*.{ending}") if "__pycache__" not in path.parts]
    advice = re.compile(r"pip install (?:-\S+ )*['\"`]?dokimos\b")
    assert [path.name for path in texts if advice.search(path.read_text(encoding="utf-8"))] == []
    assert advice.search("pip install 'dokimos[png]'") and not advice.search("pip install ./dokimos")


def test_the_results_are_listed_with_what_makes_them() -> None:
    index, listing = page("index.md"), (ROOT / "studies" / "README.md").read_text(encoding="utf-8")
    (section,) = re.findall(r":caption: Results\n(.*?)```", index, re.DOTALL)
    pages = [line for line in section.split() if line[0] != ":" and line not in ("1", "results/index")]
    for name in pages:
        rows = [line for line in listing.splitlines() if line.startswith("| [")]
        (row,) = [line for line in rows if f"]({name}.md)" in line]
        text = (ROOT / "studies" / f"{name}.md").read_text(encoding="utf-8")
        made, _, whole = row.split("|")[3].strip().strip("`").partition("`")
        if made.endswith(".py"):
            assert (ROOT / made).exists()
        assert made.rpartition("/")[2] in text, f"{name}.md does not say what makes it"
        if whole and re.match("dokimos-studies (?!law-)", made):
            said = [
                *(ROOT / "studies").rglob("*.py"),
                *(ROOT / "src/dokimos/reports/sections").glob("*.py"),
            ]
            texts = "\n".join(path.read_text(encoding="utf-8") for path in said)
            strangers = paragraphs_by_hand(text, texts)
            assert strangers == [], f"{made} would delete this from {name}.md"


def paragraphs_by_hand(text: str, script: str) -> list[str]:
    """The paragraphs of a page of which no four words in a row stand in what makes it."""
    known = " ".join(re.findall(r"[^\W\d_]+", script))
    found = []
    for paragraph in re.split(
        r"\n\s*\n", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    ):
        words = re.findall(r"[^\W\d_]+", paragraph)
        is_prose = len(words) > 8 and not re.match(r"\s*(?:[#|!-]|\*[^*])", paragraph)
        if is_prose and not any(" ".join(words[k : k + 4]) in known for k in range(len(words) - 3)):
            found.append(paragraph.strip())
    return found


def test_a_paragraph_by_hand_is_found() -> None:
    script = 'lines = ["Rank correlation of the published components", "with ours."]'
    first = "Rank correlation of the published components with ours, 12 of them."
    second = "What is open was looked for with more time on another machine."
    assert paragraphs_by_hand(f"# Page\n\n{first}\n\n| a | b |\n\n{second}\n", script) == [second]
