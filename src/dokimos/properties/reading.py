"""Reads properties from VNN-LIB files of either version, plain or compressed."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from contextlib import contextmanager

from dokimos.core.gzipped import uncompressed
from dokimos.properties.model import Property
from dokimos.properties.sexpr import Source
from dokimos.properties.vnnlib1 import parse_vnnlib1
from dokimos.properties.vnnlib2 import parse_vnnlib2

#: A file is read as text, as most readers do: each of these ends a line, and with it a comment.
_LINE_END = re.compile(r"\r\n?")
#: Characters that end a line for some readers only.
_DOUBTFUL_LINE_END = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
_COMMENT = re.compile(r";[^\n]*+")
#: A byte order mark that is not inside of a word or a number: what editors and `cat` leave behind.
_MARK = re.compile(r"""(?:^|(?<=[\s()\[\]<>=!"]))\ufeff++|\ufeff++(?=[\s()\[\]<>=!"]|$)""", re.MULTILINE)
_VERSION = "vnnlib-version"
_FIRST_WORD = re.compile(r"\s*+(?:\(\s*+(?P<word>[^\s()]*+))?")


def parse_vnnlib(text: str, *, file: str = "property") -> Property:
    """The property that a VNN-LIB text states; its first form determines the version.

    Numbers are read exactly as written. Raises UnreadableFile with line and column if the text is not
    VNN-LIB, or uses what this reader does not support.
    """
    text = _LINE_END.sub("\n", text)
    if (doubtful := _DOUBTFUL_LINE_END.search(text)) is not None:
        raise Source(text, file).error(
            doubtful.start(), f"{doubtful[0]!r} ends a line for some readers but not for others; remove it"
        )
    source = Source(without_comments(text), file)
    match = _FIRST_WORD.match(source.text)
    assert match is not None
    if match.end() == len(source.text) and match["word"] is None:
        raise source.error(0, "the file is empty; expected a VNN-LIB property")
    if match["word"] == _VERSION:
        with _without_collector():
            return parse_vnnlib2(source)
    if match["word"] == "declare-network":
        raise source.error(
            match.start("word") - 1, "a VNN-LIB 2.0 file starts with (vnnlib-version <2.0>); add that line"
        )
    with _without_collector():
        return parse_vnnlib1(source)


def without_comments(text: str) -> str:
    """The text with as many spaces in place of comments and byte order marks, so that offsets stay.

    Only line ends become one character each.
    """
    text = _LINE_END.sub("\n", text)
    if ";" in text:  # few files of millions of lines have any
        text = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)
    return _MARK.sub(lambda mark: " " * len(mark[0]), text) if "\ufeff" in text else text


def is_version_2(text: str) -> bool | None:
    """Whether a property is VNN-LIB 2.0; None if this is only the beginning of one, and does not tell."""
    text = without_comments(text)
    match = _FIRST_WORD.match(text)
    assert match is not None
    return None if match.end() == len(text) else match["word"] == _VERSION


@contextmanager
def _without_collector() -> Iterator[None]:
    """Turn off garbage collection: reading makes no cycles, and looking for them doubles the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def read_vnnlib(content: bytes, *, file: str) -> Property:
    """The property in the content of a file: UTF-8 text, plain or compressed by gzip."""
    content = uncompressed(content, file=file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        source = Source(content[: problem.start].decode("utf-8", "replace"), file)
        raise source.error(len(source.text), "the file is not UTF-8 text") from None
    return parse_vnnlib(text, file=file)
