"""The process that labels one instance tells what ended it, and keeps what it had found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dokimos.core.strict_json import read
from dokimos.engine.label import LabelFinding
from dokimos.judging import label_one
from dokimos.judging.label_one import ProcessFinding
from tests.checker.files import question
from tests.scripting import relu_network


def test_a_fault_of_ours_is_told_beside_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(instance: object, *, so_far: Callable[[LabelFinding], None], **_: object) -> LabelFinding:
        so_far(LabelFinding(nearest=0.25))
        raise ZeroDivisionError("by\nchance")

    monkeypatch.setattr(label_one, "find_label", fail)
    network, asked, result = (tmp_path / name for name in ("n.onnx", "p.vnnlib", "result.json"))
    network.write_bytes(relu_network())
    asked.write_bytes(question([(-1, 1), (-1, 1)], 1, "(>= Y_0 2.0)"))
    label_one.main(str(result), "1", "small", str(network), str(asked))
    told = read(result.read_bytes(), ProcessFinding, file=result, what="a finding")
    assert told.is_fault
    assert not told.is_over
    assert told.nearest == 0.25
    assert told.reason == "a fault of Dokimos: ZeroDivisionError: by chance"
