"""The contract tests: what Dokimos asks of its own elements, for authors of plug-ins to ask of theirs.

Derive a test class from the contract of what you add, name your elements in it, and run pytest::

    from dokimos.testing import ConstructionContract
    from my_package.family import MyFamily


    class TestMyFamily(ConstructionContract):
        constructions = (MyFamily(),)

This is the only part of Dokimos that needs pytest.
"""

try:
    import pytest
except ImportError:
    raise ImportError("dokimos.testing needs pytest; install it with `pip install pytest`.") from None

pytest.register_assert_rewrite("dokimos.testing.construction_contract")

from dokimos.testing.construction_contract import ConstructionContract  # noqa: E402

__all__ = ["ConstructionContract"]
