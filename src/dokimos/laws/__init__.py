"""Laws: what must be true of a model across several runs, written down and put to the test.

The rooms, each of which imports only those before it:

    domain         what records are made of, and the functions that laws may call
    language       the text of a law: read, checked against a domain, laid out
    models         the model under test, whatever it is made of
    engine         cases drawn, run and judged in batches; violations made small and put in words
    reporting      what was found, on a terminal, on a page and in files
    pytest_plugin  laws as tests of pytest
    studies        the six shipped domains with their laws and models; reached by name only

A domain's file imports from here what its features are made of.
"""

from dokimos.laws.domain.csv_tables import read_column, read_table
from dokimos.laws.domain.features import Feature, Layout, category, choice, flag, integer, real, text
from dokimos.laws.domain.tables import features_of

__all__ = [
    "Feature",
    "Layout",
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
