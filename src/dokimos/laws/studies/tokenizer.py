"""WordPiece: text as the numbers of a vocabulary's pieces, the way uncased BERT models read it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping

_UNKNOWN, _BEGIN, _END = "[UNK]", "[CLS]", "[SEP]"
#: A longer word is unknown.
_LONGEST = 100


class WordPiece:
    """Splits text into pieces that a vocabulary has; the longest piece that fits comes first."""

    def __init__(self, vocabulary: str) -> None:
        """`vocabulary` is the content of a vocab.txt: one piece a line, in the order of their numbers."""
        pieces = vocabulary.split("\n")
        self._numbers: Mapping[str, int] = {piece: number for number, piece in enumerate(pieces) if piece}
        self._known: dict[str, list[int]] = {}

    def numbers(self, text: str, *, most: int) -> list[int]:
        """The numbers of at most `most` pieces, the marks of the beginning and of the end included."""
        inner = [number for word in _words(text) for number in self._word(word)]
        return [self._numbers[_BEGIN], *inner[: most - 2], self._numbers[_END]]

    def _word(self, word: str) -> list[int]:
        if word not in self._known:
            self._known[word] = self._pieces(word)
        return self._known[word]

    def _pieces(self, word: str) -> list[int]:
        unknown = [self._numbers[_UNKNOWN]]
        if len(word) > _LONGEST:
            return unknown
        found, start = [], 0
        while start < len(word):
            mark = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if mark + word[start:end] in self._numbers), None)
            if end is None:
                return unknown
            found.append(self._numbers[mark + word[start:end]])
            start = end
        return found


def _words(text: str) -> Iterator[str]:
    """Words and single marks of punctuation, in lower case and without accents."""
    spaced = "".join(f" {mark} " if _stands_alone(mark) else mark for mark in text if not _is_control(mark))
    for word in spaced.split():
        plain = unicodedata.normalize("NFD", word.lower())
        letters = [letter for letter in plain if unicodedata.category(letter) != "Mn"]
        held: list[str] = []
        for letter in letters:
            if _is_punctuation(letter):
                if held:
                    yield "".join(held)
                held = []
                yield letter
            else:
                held.append(letter)
        if held:
            yield "".join(held)


def _is_control(mark: str) -> bool:
    return mark in "\0\ufffd" or (mark not in "\t\n\r" and unicodedata.category(mark).startswith("C"))


def _is_punctuation(mark: str) -> bool:
    is_ascii_mark = mark.isascii() and mark.isprintable() and not mark.isalnum() and mark != " "
    return is_ascii_mark or unicodedata.category(mark).startswith("P")


def _stands_alone(mark: str) -> bool:
    """Whether it is a Chinese character, each of which counts as a word."""
    code = ord(mark)
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0xF900 <= code <= 0xFAFF
        or 0x20000 <= code <= 0x2FA1F
    )
