from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from dokimos.core.errors import InputError
from dokimos.reports import exports
from dokimos.reports.figures.curves import CactusSeries, cactus
from dokimos.reports.figures.frame import Figure
from dokimos.reports.render import drawing_style


def _figure() -> Figure:
    found = cactus([CactusSeries("marabou", (0.5, 1.0, 2.0))], limit_wall_seconds=10)
    assert found is not None
    return found


def test_a_drawing_stands_alone() -> None:
    style = drawing_style()
    assert "var(" not in style
    assert ".figure .s0 { stroke: #1f5fa8; }" in style
    assert "@media" not in style
    assert style in _figure().standalone(style)


def test_a_picture_has_the_size_and_the_colours_of_its_drawing(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
    exports.require_renderer()
    assert exports.write_pictures([_figure()], tmp_path) == ("cactus",)
    content = (tmp_path / "cactus.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", content[16:24])
    assert (width, height) == (3 * _figure().width, 3 * _figure().height)
    assert (tmp_path / "cactus.svg").read_text(encoding="utf-8").startswith("<svg xmlns=")
    blank = Figure("blank", "", "", _figure().width, _figure().height, "")
    exports.write_pictures([blank], tmp_path)
    assert len((tmp_path / "blank.png").read_bytes()) < len(content)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    monkeypatch.setattr(exports, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"^Pictures .* need resvg-py; .* pip install 'resvg-py>=\S+'$"):
        exports.require_renderer()


def test_a_machine_without_fonts_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "find_spec", lambda _: object())
    monkeypatch.setattr(exports, "_render", lambda _, font=None: b"the same")
    exports._font.cache_clear()
    with pytest.raises(InputError, match="no font"):
        exports.require_renderer()
    exports._font.cache_clear()


def test_the_first_font_that_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "_render", lambda _, font=None: str(font == "Noto Sans").encode())
    exports._font.cache_clear()
    assert exports._font() == "Noto Sans"
    exports._font.cache_clear()
