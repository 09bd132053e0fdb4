"""The page on published networks: what an unfinished run says, and what is not counted twice."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return importlib.import_module("dokimos_studies.published_properties")


def _journal(script: ModuleType, path: Path, *entries: dict[str, Any]) -> Any:
    path.write_text("".join(json.dumps({"cpu_seconds": 2, **entry}) + "\n" for entry in entries))
    return script.Journal(path)


def test_a_share_is_of_the_first_pictures_that_are_decided(script: ModuleType, tmp_path: Path) -> None:
    found = [
        {"key": "accuracy resnet_2b 1/255 of 6", "right": 5, "resists": [0, 1, 3, 4]},
        {"key": "accuracy resnet_2b 2/255 of 6", "right": 5, "resists": [0, 3, 4]},
        {"key": "verified resnet_2b 1/255 0", "proven": True},
        {"key": "verified resnet_2b 2/255 0", "proven": True},
        {"key": "verified resnet_2b 1/255 1", "proven": False},
        {"key": "verified resnet_2b 1/255 4", "proven": True},  # picture 3 is not bounded yet
    ]
    page = script.page(_journal(script, tmp_path / "a", *found))
    assert page.count("33.3% (6.1 to 79.2) of the first 3") == 2
    rest = {"key": "verified resnet_2b 1/255 3", "proven": False}
    page = script.page(_journal(script, tmp_path / "b", *found, rest))
    assert "33.3% (9.7 to 70.0); *57.16%*" in page  # 0 and 4 of all six
    assert "25.0% (4.6 to 69.9) of the first 4" in page  # at 2/255, picture 4 is not bounded yet


def test_labels_at_both_ends_are_counted_and_the_others_named(script: ModuleType, tmp_path: Path) -> None:
    missing = "No record of cifar10 gives an instance: no attack succeeds; change the radius."
    journal = _journal(
        script,
        tmp_path / "a",
        {"key": "ends oval-base 1", "both": True, "reason": "", "bytes": 5000},
        {"key": "ends oval-base 7", "both": False, "reason": missing},
    )
    assert "| oval-base | 2 | 1 | 5 kB | 2 | picture 7: no attack succeeds |" in script.page(journal)
