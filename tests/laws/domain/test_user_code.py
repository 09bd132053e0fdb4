"""Python that the user brings: what runs is what the file says now."""

from __future__ import annotations

import os
from pathlib import Path

from dokimos.laws.domain.functions import load_module


def test_an_edit_of_the_same_length_within_the_same_second_is_seen(tmp_path: Path) -> None:
    domain = tmp_path / "game.py"
    domain.write_text("ANSWER = 1\n")
    os.utime(domain, (1_000_000_000, 1_000_000_000))
    assert load_module(domain).ANSWER == 1
    domain.write_text("ANSWER = 2\n")
    os.utime(domain, (1_000_000_000, 1_000_000_000))
    assert load_module(domain).ANSWER == 2
    assert [each.name for each in tmp_path.iterdir()] == ["game.py"]  # no bytecode beside it
