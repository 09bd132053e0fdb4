"""CITATION.cff: how to cite a release, in the format that code hosts display."""

from __future__ import annotations

import json

from dokimos.suites.card import Publication

CITATION = "CITATION.cff"


def citation(published: Publication) -> str:
    """The file, in Citation File Format 1.2.0. Texts are quoted as in JSON, which YAML also reads."""
    lines = [
        "cff-version: 1.2.0",
        "message: If you use these instances, please cite them as below.",
        "type: dataset",
        f"title: {_quoted(published.title)}",
        "authors:",
        *(f"  - name: {_quoted(name)}" for name in published.authors),
        f"version: {_quoted(published.version)}",
        f"date-released: {published.date}",
        f"license: {_quoted(published.licence)}",
        *([f"url: {_quoted(published.url)}"] if published.url else []),
    ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
