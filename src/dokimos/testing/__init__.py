"""The contract tests: what Dokimos requires of its own elements, for authors of plug-ins to check theirs.

Derive a test class from the contract of what you add, list your elements in it, and run pytest::

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

for _part in ("contracts", "construction_contract", "sweeps"):
    pytest.register_assert_rewrite(f"dokimos.testing.{_part}")

from dokimos.testing.construction_contract import ConstructionContract  # noqa: E402
from dokimos.testing.contracts import (  # noqa: E402
    AttackContract,
    CertificateContract,
    ComponentContract,
    RuleSetContract,
    VerifierContract,
)

__all__ = [
    "AttackContract",
    "CertificateContract",
    "ComponentContract",
    "ConstructionContract",
    "RuleSetContract",
    "VerifierContract",
]
