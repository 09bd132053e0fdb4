"""Laws: what must be true of a model across several runs, written down and tested.

The packages, each of which imports only those before it:

    domain         what records are made of, and the functions that laws may call
    language       the text of a law: parsed, checked against a domain, formatted
    models         the model under test, whatever its kind
    engine         cases drawn, run and judged in batches; violations shrunk and described
    proving        laws decided for every case of a set, with proofs that are checked
    repair         networks changed so that they keep laws
    reporting      what was found, on a terminal, on a page and in files
    pytest_plugin  laws as pytest tests
    examples       two domains with their laws and models; reached by name only

A domain's file imports the constructors of its features from here. Each is loaded on first use, so that the
pytest plug-in, which is in this package, costs other projects nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dokimos.laws.domain.data_frames import features_of, read_column, read_table
    from dokimos.laws.domain.features import Feature, Layout, category, choice, flag, integer, real, text
    from dokimos.laws.domain.functions import above

__all__ = [
    "Feature",
    "Layout",
    "above",
    "category",
    "choice",
    "features_of",
    "flag",
    "integer",
    "read_column",
    "read_table",
    "real",
    "text",
]

_MODULES = dict.fromkeys(("read_column", "read_table", "features_of"), "data_frames")
_MODULES["above"] = "functions"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"dokimos.laws.domain.{_MODULES.get(name, 'features')}"), name)
