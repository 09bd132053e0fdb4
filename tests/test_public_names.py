from __future__ import annotations

import pytest

import dokimos


def test_every_public_name_can_be_used() -> None:
    for name in dokimos.__all__:
        assert getattr(dokimos, name) is not None


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'chek'"):
        dokimos.chek  # noqa: B018
