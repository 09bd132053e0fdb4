"""The command line starts without what only some commands need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "onnxruntime",
    "onnx",
    "numpy",
    "flint",
    "plotly",
    "jinja2",
    "msgspec",
    "pydantic",
    "rich",
)
PROGRAM = """
import runpy, sys
try:
    runpy.run_module("dokimos", run_name="__main__")
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize("words", [["--help"], ["gate", "--help"], ["law", "verify", "--help"]])
def test_the_command_line_imports_nothing_heavy(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "typer" in loaded
    assert sorted(loaded & set(HEAVY)) == []
