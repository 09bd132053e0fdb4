"""Features by name and by index."""

from __future__ import annotations

import pytest

from dokimos.core.errors import InputError
from dokimos.laws import Layout, choice, integer, real, text


def test_layouts_by_name_and_index() -> None:
    layout = Layout([integer("age"), choice("sex", "Female", "Male"), text("note")], {-1: "sex"})
    assert layout.width == 4
    assert (layout.named("sex").start, layout.named("sex").stop) == (1, 3)
    assert (layout.named("sex_Male").start, layout.named("f2").start, layout.at(2).start) == (2, 2, 2)
    assert layout.at(-1) == layout.named("sex")
    assert layout.at(2).feature.spoken == "sex Male"
    for wrong in (4, -2):
        with pytest.raises(InputError, match="columns 0 to 3"):
            layout.at(wrong)
    with pytest.raises(InputError, match="did you mean note"):
        layout.named("nots")


def test_an_end_that_no_float_holds_is_refused() -> None:
    with pytest.raises(InputError, match="An end of the feature age is too large"):
        integer("age", 0, 10**400)
    assert real("size", 0, float("inf")).high == float("inf")
