"""The trusted core: what has to be right for a label to be right, and how large it is.

Whoever trusts a label trusts every module that the checker imports, wherever in a file the import stands,
and the packages around these modules. They are counted in lines of code: no blanks, comments or docstrings.
To print the list:

    python -m pytest -s tests/checker/test_trusted_core.py

A commit that makes the checker know more (an operator, a kind of proof) may raise a number, and says so.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import dokimos
from dokimos.checker import CERTIFICATES
from dokimos.suites.entry import read_content, read_text
from dokimos.suites.suite_files import InstanceFiles, store_files, write_index
from tests.corpus.make_certificates import CORPUS

FORBIDDEN = (
    "torch",
    "onnxruntime",
    "highspy",
    "dokimos.constructions",
    "dokimos.engine",
    "dokimos.verifiers",
    "dokimos.networks.writing",
    "dokimos.suites.vnnlib.writer",
    "dokimos.suites.suite_files",
)
#: Erf, Sqrt and Gelu are 32 of these, in every table; bounds that belong to a region alone, and one
#: product of matrices for many rows, 12; what was computed last and is kept, 20; Round, 32; and what
#: exact walks refuse, 6. Where float32 is proven and the reals alone are not, 7. Float types of 16
#: bits, 100; answers under semantics of their own, 114. Walks that share lines, and may be stopped, 10.
#: Integers beyond their type, and tensors of 16 bits that are read rounded and as they were kept, 13.
#: Products by integers in float64, 128, what a network walked twice keeps, 14, and what is said of a
#: missing folder and else, 21.
MOST_LINES_IN_ALL = 8996
#: Parts of the checker that prove laws, and no label; what those on trees add.
FOR_LAWS = ("dokimos.checker.trees", "dokimos.checker.lemmas.zones", "dokimos.checker.lemmas.relu_layers")
MOST_LINES_FOR_TREES = 930
MOST_LINES_FOR_ONE_KIND = 5643
#: Beside the core: what the label of a network with Resize, Upsample or ConvTranspose needs, too.
UPSAMPLING = "dokimos.networks.reading.upsampling"
MOST_LINES_FOR_UPSAMPLING = 215
#: The same of what the label of a quantised network needs.
QUANTISATION = "dokimos.networks.reading.quantisation"
MOST_LINES_FOR_QUANTISATION = 169
#: The same of an answer that holds in floats alone.
RUNS = "dokimos.checker.proofs.runs"
MOST_LINES_FOR_RUNS = 211
#: What looks for proofs or violations of laws; nothing that checks one may import it.
SEARCH_FOR_LAWS = (
    "torch",
    "dokimos.engine",
    "dokimos.constructions",
    "dokimos.laws.proving.case_tables",
    "dokimos.laws.proving.law_search",
    "dokimos.laws.proving.verifying",
)
MOST_LINES_FOR_A_LAW = 20_713
MOST_LINES_FOR_LABELS_AND_LAWS = 22_972
SOURCE = Path(dokimos.__file__).parent
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)

CHECK = """
import atexit, sys

@atexit.register
def finish():
    from dokimos.checker import CERTIFICATES
    for kind in CERTIFICATES:
        CERTIFICATES[kind]
    print(*sys.modules, sep="\\n")

sys.argv[1:] = ["check", {suite!r}, "--core-only"]
from dokimos.__main__ import main
main()
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """The corpus of accepted proofs as a suite."""
    names = [path.name for path in (CORPUS / "accept").iterdir()]
    for name in names:
        folder = CORPUS / "accept" / name
        network, question = (read_content(folder / file) for file in ("network.onnx", "property.vnnlib"))
        store_files(tmp_path, InstanceFiles(name, "", network, question, read_text(folder / "truth.json")))
    write_index(tmp_path, [(name, name) for name in names], 1, recipe={}, version="0")
    return tmp_path


def test_a_check_with_the_core_only_loads_nothing_else(suite: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECK.format(suite=str(suite))], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    count = len(list((suite / "truth").iterdir()))
    assert f"{count} of {count} labels proven" in done.stdout
    loaded = done.stdout.split()
    assert {type(CERTIFICATES[kind]).__module__ for kind in CERTIFICATES} <= set(loaded)
    assert [name for name in loaded if name.startswith(FORBIDDEN)] == []


@cache
def path_of(module: str) -> Path | None:
    """The file of a module or package of ours; None for any other name."""
    place = SOURCE.parent.joinpath(*module.split("."))
    found = [path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()]
    return found[0] if found else None


@cache
def imports_of(module: str) -> frozenset[str]:
    """The modules of ours that a module imports when it runs, and the packages around it."""
    path = path_of(module)
    assert path is not None
    around = module.split(".")[:-1]
    names = {".".join(around[: k + 1]) for k in range(len(around))}
    package = module if path.name == "__init__.py" else ".".join(around)
    for node in running(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names.update([origin, *(f"{origin}.{alias.name}" for alias in node.names)])
    return frozenset(name for name in names if name.split(".")[0] == "dokimos" and path_of(name))


def running(node: ast.AST) -> Iterator[ast.AST]:
    """Everything in a syntax tree but what stands under `if TYPE_CHECKING`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        yield child
        yield from running(child)


def closure(modules: Iterable[str]) -> set[str]:
    """These modules and all that they need."""
    found: set[str] = set()
    pending = list(modules)
    while pending:
        module = pending.pop()
        if module not in found:
            found.add(module)
            pending += imports_of(module)
    return found


@cache
def lines_of_code(module: str) -> int:
    """How many lines of a module hold code."""
    path = path_of(module)
    assert path is not None
    return len(code_lines(path.read_text(encoding="utf-8")))


def code_lines(text: str) -> set[int]:
    """The numbers of the lines with code: strings that stand for themselves document and do not count."""
    said: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            said.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (*LAYOUT, tokenize.ENDMARKER):
            found.update(range(token.start[0], token.end[0] + 1))
    return found - said


def searching(modules: Iterable[str]) -> list[str]:
    """Those of the modules that look for proofs or violations of laws.

    Runtimes do not: what was read of a model is compared with a run of it.
    """
    runtimes = "dokimos.engine.runtimes"
    runs = ("dokimos.engine", runtimes, f"{runtimes}.sessions", f"{runtimes}.narrow")
    return [name for name in sorted(modules) if name.startswith(SEARCH_FOR_LAWS) and name not in runs]


def module_of(kind: str) -> str:
    return type(CERTIFICATES[kind]).__module__


def whole_core() -> set[str]:
    """What all labels need: every module of the checker that is not for laws, and all that they import."""
    return closure(name for name in checker_modules() if not name.startswith((*FOR_LAWS, RUNS)))


def checker_modules() -> list[str]:
    files = (SOURCE / "checker").rglob("*.py")
    named = (".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in files)
    return [name.removesuffix(".__init__") for name in named]


def listing(modules: Iterable[str]) -> str:
    """The modules with their lines of code, the longest first, and the sum."""
    sizes = {module: lines_of_code(module) for module in modules}
    rows = [f"{size:6} {module}" for module, size in sorted(sizes.items(), key=lambda i: (-i[1], i[0]))]
    return "\n".join([*rows, f"{sum(sizes.values()):6} in all"])


def test_the_core_for_all_kinds_is_no_larger_than_it_was() -> None:
    core = whole_core()
    assert core == closure(["dokimos.checker.check", *map(module_of, CERTIFICATES)])
    print(f"\nThe trusted core, in lines of code:\n{listing(core)}")
    assert {module_of(kind) for kind in CERTIFICATES} <= core
    assert sum(map(lines_of_code, core)) <= MOST_LINES_IN_ALL


def test_the_core_for_any_one_kind_is_no_larger_than_it_was() -> None:
    """The label of a rewritten network also needs the kind that proves its base: a number of its own."""
    needed = {kind: closure(["dokimos.checker.check", module_of(kind)]) for kind in CERTIFICATES}
    sizes = {kind: sum(map(lines_of_code, modules)) for kind, modules in needed.items()}
    print("\nWhat one label needs, in lines of code:")
    for kind in sorted(sizes, key=lambda kind: (-sizes[kind], kind)):
        print(f"{sizes[kind]:6} {kind}")
    largest = max(sizes, key=lambda kind: sizes[kind])
    print(f"\nFor {largest}:\n{listing(needed[largest])}")
    assert sizes[largest] <= MOST_LINES_FOR_ONE_KIND


def test_what_laws_on_trees_add_is_no_larger_than_it_was() -> None:
    assert [name for name in whole_core() if name.startswith(FOR_LAWS)] == []
    added = closure(["dokimos.checker.trees.covers"]) - whole_core()
    print(f"\nWhat laws on trees add, in lines of code:\n{listing(added)}")
    assert all(name.startswith(FOR_LAWS) for name in added)
    assert sum(map(lines_of_code, added)) <= MOST_LINES_FOR_TREES


@pytest.mark.parametrize(
    ("module", "most"),
    [
        (UPSAMPLING, MOST_LINES_FOR_UPSAMPLING),
        (QUANTISATION, MOST_LINES_FOR_QUANTISATION),
        (RUNS, MOST_LINES_FOR_RUNS),
    ],
)
def test_what_few_labels_need_is_no_larger_than_it_was(module: str, most: int) -> None:
    added = closure([module]) - whole_core()
    print(f"\nWhat networks with these operators add, in lines of code:\n{listing(added)}")
    assert added == {module}
    assert sum(map(lines_of_code, added)) <= most


def test_what_the_proof_of_a_law_needs_is_no_larger_than_it_was() -> None:
    """All of it: the language, the domain, every reader of models and what runs a case again.

    The comparison with a run of the model is in it too. Most of it stands before the question that is
    proven: whoever trusts an answer trusts how law, domain and model were read.
    """
    core = closure(["dokimos.laws.proving.saved_proofs"])
    sizes = dict.fromkeys(("checker", "networks", "laws", "others"), 0)
    for module in core:
        room = module.split(".")[1] if "." in module else ""
        sizes[room if room in sizes else "others"] += lines_of_code(module)
    print(f"\nThe trusted core of laws, in lines of code:\n{listing(core)}\n{sizes}")
    assert searching(core) == []
    assert sum(sizes.values()) <= MOST_LINES_FOR_A_LAW
    assert sum(map(lines_of_code, core | whole_core())) <= MOST_LINES_FOR_LABELS_AND_LAWS


def test_the_core_imports_nothing_that_must_not_be_trusted() -> None:
    every = closure([*checker_modules(), UPSAMPLING, QUANTISATION])
    assert [name for name in sorted(every) if name.startswith(FORBIDDEN)] == []


def test_the_count_sees_late_imports_and_no_documentation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "dokimos"
    (source / "some").mkdir(parents=True)
    for name in ("__init__", "some/__init__", "some/first", "some/second", "some/third", "some/fourth"):
        (source / f"{name}.py").touch()
    (source / "some" / "all.py").write_text(
        '"""Two lines\nof documentation."""\n\nfrom typing import TYPE_CHECKING\n\n'
        "from dokimos.some import first  # not a line of its own\n"
        "if TYPE_CHECKING:\n    from dokimos.some.second import A\n"
        "# nor is this\n"
        'def f():\n    """Nor this."""\n    from . import third\n    import dokimos.some.fourth\n'
        'TEXT = """a text\nof two lines"""\n'
    )
    monkeypatch.setattr(sys.modules[__name__], "SOURCE", source)
    for function in (path_of, imports_of, lines_of_code):
        function.cache_clear()
    try:
        parts = {"first", "third", "fourth", "all"}
        assert closure(["dokimos.some.all"]) == {
            "dokimos",
            "dokimos.some",
            *(f"dokimos.some.{p}" for p in parts),
        }
        assert lines_of_code("dokimos.some.all") == 9
    finally:
        for function in (path_of, imports_of, lines_of_code):
            function.cache_clear()
