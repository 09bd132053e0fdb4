"""How a file of each library is loaded, in the process that is there to survive it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dokimos.laws.models.trial import LOADERS


class _Booster:
    def __init__(self, model_str: str = "") -> None:
        self.content = model_str

    def load_model(self, content: bytearray) -> None:
        self.content = content.decode()


class _CatBoost:
    def load_model(self, path: str, format: str) -> Any:
        self.content, self.form = Path(path).read_text(), format
        self.classes_ = [0, 1] if self.content == "classes" else []
        return self


class _Classifier(_CatBoost):
    pass


PACKAGE = SimpleNamespace(Booster=_Booster, CatBoostRegressor=_CatBoost, CatBoostClassifier=_Classifier)


@pytest.mark.parametrize("library", LOADERS)
def test_a_file_is_given_as_it_is(library: str) -> None:
    assert LOADERS[library](PACKAGE, b"trees", "cbm").content == "trees"


def test_a_file_of_catboost_is_a_classifier_if_it_has_classes() -> None:
    found = [LOADERS["catboost"](PACKAGE, content, "json") for content in (b"classes", b"numbers")]
    assert [type(each) for each in found] == [_Classifier, _CatBoost]
    assert {each.form for each in found} == {"json"}
