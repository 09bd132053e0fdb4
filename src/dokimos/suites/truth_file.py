"""Reads truth files, with one clear sentence for everything that is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.properties.decimals import parse_decimal
from dokimos.suites.instance import Certificate, Claim, Label, Semantics, Truth

SCHEMA = 1
_KEYS = {"schema", "label", "semantics", "certificate", "sha256", "witness", "origin"}


def load_truth(text: str, *, file: str) -> Truth:
    """Read a truth file. Raises UnreadableFile, naming the file and what is wrong."""
    return truth_of(load_json(text, file=file), file=file)


def truth_of(document: Any, *, file: str) -> Truth:
    """What a truth file says, from its JSON. Raises UnreadableFile."""
    return _Reader(file).truth(document)


def load_json(text: str, *, file: str) -> Any:
    """JSON, or UnreadableFile with line and column."""
    try:
        return json.loads(text, object_pairs_hook=_without_repeats)
    except json.JSONDecodeError as error:
        where = f"{file}:{error.lineno}:{error.colno}"
        raise UnreadableFile(where, f"not valid JSON ({error.msg}); the file may be truncated") from None
    except _Repeated as error:
        raise UnreadableFile(file, f"the key {error.args[0][:80]!r} stands twice in one object") from None
    except (RecursionError, ValueError):
        raise UnreadableFile(file, "not usable JSON (nested too deeply, or a number too long)") from None


class _Repeated(Exception):
    """A key that an object holds twice: which of the two counts is left open by JSON."""


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Repeated(key)
        found[key] = value
    return found


class _Reader:
    """Takes a JSON document apart, refusing what does not have the shape of a truth."""

    def __init__(self, file: str) -> None:
        self._file = file

    def _refuse(self, reason: str) -> UnreadableFile:
        return UnreadableFile(self._file, f"{reason}; this is not a truth file of schema {SCHEMA}")

    def _mapping(self, value: Any, what: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self._refuse(f"{what} must be an object")
        return value

    def _get(self, mapping: Mapping[str, Any], key: str, what: str) -> Any:
        if key not in mapping:
            raise self._refuse(f"{what} lacks {key!r}")
        return mapping[key]

    def _expect(self, mapping: Mapping[str, Any], known: set[str]) -> None:
        unknown = sorted(set(mapping) - known)
        if unknown:
            raise self._refuse(f"unknown key {unknown[0][:80]!r}")

    def _text(self, mapping: Mapping[str, Any], key: str, what: str) -> str:
        value = self._get(mapping, key, what)
        if not isinstance(value, str):
            raise self._refuse(f"{key!r} of {what} must be a string")
        return value

    def _number(self, value: Any, what: str) -> Fraction:
        if not isinstance(value, str):
            raise self._refuse(f"{what} must be a decimal spelt as a string")
        try:
            return parse_decimal(value)
        except InputError as error:
            raise self._refuse(f"{what}: {error}") from None

    def truth(self, document: Any) -> Truth:
        top = self._mapping(document, "the document")
        schema = self._get(top, "schema", "the document")
        if type(schema) is not int or schema != SCHEMA:
            raise self._refuse("it has another schema")
        self._expect(top, _KEYS)
        hashes = self._mapping(self._get(top, "sha256", "the document"), "'sha256'")
        certificate = self._mapping(self._get(top, "certificate", "the document"), "'certificate'")
        self._expect(hashes, {"network", "property"})
        self._expect(certificate, {"kind", "data"})
        label = self._text(top, "label", "the document")
        if label not in {known.value for known in Label}:
            raise self._refuse(f"the label {label[:80]!r} is neither 'sat' nor 'unsat'")
        return Truth(
            label=Label(label),
            claims=self._claims(self._get(top, "semantics", "the document")),
            certificate=Certificate(
                kind=self._text(certificate, "kind", "the certificate"),
                data=self._mapping(self._get(certificate, "data", "the certificate"), "'data'"),
            ),
            network_sha256=self._text(hashes, "network", "'sha256'"),
            property_sha256=self._text(hashes, "property", "'sha256'"),
            witness=self._witness(top.get("witness")),
        )

    def _claims(self, value: Any) -> dict[Semantics, Claim]:
        stated = self._mapping(value, "'semantics'")
        known = {s.value: s for s in Semantics}
        if not set(stated) <= set(known):
            raise self._refuse(f"unknown semantics {sorted(set(stated) - set(known))[0][:80]!r}")
        return {known[name]: self._claim(name, claim) for name, claim in stated.items()}

    def _claim(self, name: str, value: Any) -> Claim:
        claim = self._mapping(value, f"the claim for {name}")
        self._expect(claim, {"proven", "margin", "ulps"})
        proven, ulps = self._get(claim, "proven", f"the claim for {name}"), claim.get("ulps")
        if not isinstance(proven, bool):
            raise self._refuse(f"'proven' of the claim for {name} must be true or false")
        if ulps is not None and not (type(ulps) is int and 0 < ulps < 2**16):
            raise self._refuse(f"'ulps' of the claim for {name} must be a small positive integer")
        margin = self._number(claim["margin"], f"the margin for {name}") if "margin" in claim else None
        if margin is not None and margin < 0:
            raise self._refuse(f"the margin for {name} is negative")
        return Claim(proven=proven, margin=margin, ulps=ulps)

    def _witness(self, value: Any) -> tuple[Fraction, ...] | None:
        if value is None:
            return None
        if not isinstance(value, list):
            raise self._refuse("the witness must be a list")
        return tuple(self._number(x, f"coordinate {i} of the witness") for i, x in enumerate(value))
