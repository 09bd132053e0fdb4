"""Metadata in Croissant 1.0 (JSON-LD), which search engines and data set loaders read."""

from __future__ import annotations

import json
from typing import Any

from dokimos.releases.labels_table import COLUMNS, TABLE
from dokimos.suites.card import Publication

METADATA = "croissant.json"
#: The vocabulary of the format, word for word as it asks for it.
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def croissant(*, about: str, published: Publication, table: bytes, table_sha256: str) -> str:
    """The metadata of a release whose table of instances has these bytes."""
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": published.title,
        "description": about,
        "license": published.licence,
        "version": published.version,
        "datePublished": published.date,
        "creator": [{"@type": "sc:Person", "name": name} for name in published.authors],
        **({"url": published.url} if published.url else {}),
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": TABLE,
                "name": TABLE,
                "contentUrl": TABLE,
                "contentSize": f"{len(table)} B",
                "encodingFormat": "text/csv",
                "sha256": table_sha256,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "instances",
                "name": "instances",
                "description": "one record for each instance",
                "field": [_field(name, about_it) for name, about_it in COLUMNS.items()],
            }
        ],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _field(name: str, about: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"instances/{name}",
        "name": name,
        "description": about,
        "dataType": "sc:Float" if name == "timeout_seconds" else "sc:Text",
        "source": {"fileObject": {"@id": TABLE}, "extract": {"column": name}},
    }
