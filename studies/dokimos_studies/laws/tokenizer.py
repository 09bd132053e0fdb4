"""WordPiece: text as indices into a vocabulary of pieces, the way uncased BERT models read it."""

from __future__ import annotations

from dokimos_studies.laws.extras import needed

_UNKNOWN, _BEGIN, _END = "[UNK]", "[CLS]", "[SEP]"
#: Longer words count as unknown.
_LONGEST = 100


class WordPiece:
    """Splits text into pieces that a vocabulary has; the longest piece that fits comes first.

    The package tokenizers does the work, from the vocabulary alone: nothing is downloaded.
    """

    def __init__(self, vocabulary: str) -> None:
        """`vocabulary` is the content of a vocab.txt: one piece per line, in the order of their indices.

        Raises InputError if the package is not installed.
        """
        library = needed("tokenizers", "reviews")
        numbers = {piece: number for number, piece in enumerate(vocabulary.split("\n")) if piece}
        self._begin, self._end = numbers[_BEGIN], numbers[_END]
        model = library.models.WordPiece(
            vocab=numbers, unk_token=_UNKNOWN, max_input_chars_per_word=_LONGEST
        )
        self._tokenizer = library.Tokenizer(model)
        self._tokenizer.normalizer = library.normalizers.BertNormalizer(strip_accents=True, lowercase=True)
        self._tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()

    def numbers(self, text: str, *, most: int) -> list[int]:
        """The indices of at most `most` pieces, including the markers of the beginning and the end."""
        inner: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [self._begin, *inner[: most - 2], self._end]
