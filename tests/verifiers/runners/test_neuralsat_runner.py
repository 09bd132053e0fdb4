"""Where NeuralSAT has no rule for an operator, its runner says so, wherever in NeuralSAT that shows."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from dokimos.verifiers.runners import neuralsat_runner as runner

READING = """
import sys
def convert(node):
    raise NotImplementedError("no converter")
class Node: op_type = "Hardmax"
try:
    convert(Node())
except Exception as error:
    print(error)
    sys.exit()
"""
CONVERTING = """
class OnnxConversionError(Exception): pass
class Node: op_type = "Gather"
def forward():
    node = Node()
    raise RuntimeError("INDICES element is out of\\n DATA bounds")
try:
    try:
        forward()
    except:
        raise OnnxConversionError
except OnnxConversionError:
    exit()
"""
BOUNDING = """
from types import SimpleNamespace as Node
def convert():
    unsupported_ops = [Node(op="aten::ATen", attr={"operator": "einsum"}), Node(op="onnx::Det", attr={})]
    raise NotImplementedError("There are unsupported operations")
convert()
"""


def become(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> str:
    """Run a script in NeuralSAT's place; what is in the result file then."""
    (folder / "main.py").write_text(script)
    monkeypatch.setattr(runner, "main_script", lambda: folder / "main.py")
    monkeypatch.setattr(sys, "argv", ["runner", "--result_file", str(folder / "result")])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace())  # type: ignore[arg-type]
    runner.main()
    return (folder / "result").read_text()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (READING, "unsupported\noperator Hardmax: no converter\n"),
        (
            CONVERTING,
            "unsupported\nthe network that it made of this one does not run (at Gather): "
            "RuntimeError: INDICES element is out of DATA bounds\n",
        ),
        (BOUNDING, "unsupported\noperator einsum, onnx::Det: There are unsupported operations\n"),
    ],
)
def test_an_unknown_operator_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, said: str
) -> None:
    assert become(monkeypatch, tmp_path, script) == said


#: A reader that stumbles over its own code has not recognised anything.
STUMBLING = """
try:
    {}["kernel_size"]
except:
    exit()
"""


@pytest.mark.parametrize("script", ["raise ValueError('else')", "import sys; sys.exit(3)", STUMBLING])
def test_any_other_end_is_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
    with pytest.raises((ValueError, SystemExit)):
        become(monkeypatch, tmp_path, script)
    assert not (tmp_path / "result").exists()
