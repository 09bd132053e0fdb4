"""The notebook of laws runs from its first cell to its last, and shows what it says."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "laws.ipynb"


def test_every_cell_runs_and_results_show_themselves() -> None:
    pytest.importorskip("sklearn")
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names: dict[str, Any] = {}
    shown = []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"]))
        last = body.body.pop() if isinstance(body.body[-1], ast.Expr) else None
        exec(compile(body, str(NOTEBOOK), "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)
            shown.append(value._repr_html_())
    tested, frame, verified, monotone = shown
    assert "violated" in tested and tested.count("<li>") == 3
    assert "<table" in frame
    assert "rising rent: proven" in verified
    assert "proven for every record" in monotone
