"""Laws: what must be true of a model across several runs, written down and put to the test.

A domain's file imports from here what its features are made of.
"""

from dokimos.laws.features import Feature, Layout, choice, flag, integer, real, text

__all__ = ["Feature", "Layout", "choice", "flag", "integer", "real", "text"]
