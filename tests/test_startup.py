"""The command line starts without what only some commands need."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("torch", "onnxruntime", "onnx", "numpy", "flint", "plotly", "jinja2", "msgspec")


def test_the_command_line_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import dokimos.cli, sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "dokimos" in loaded
    assert sorted(loaded & set(HEAVY)) == []
