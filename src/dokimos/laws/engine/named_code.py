"""The Python code that replaying a file of violations would run."""

from __future__ import annotations

from dokimos.laws.domain.lookup import domain_file
from dokimos.laws.language.blocks import predictions
from dokimos.laws.language.syntax import Law
from dokimos.laws.models.lookup import is_code


def code_named(law: Law, *, domain: str | None, model: str | None) -> tuple[str, ...]:
    """Which of the law, the domain and the model that a file names are code, in words; None if none is.

    Shipped domains are ours, and files of numbers (ONNX, trees) are not code.
    """
    found = []
    if predictions(law) is None:
        found.append(f"the block of its law (line {law.block.at.line})")
    if domain is not None and (path := domain_file(domain)) is not None:
        found.append(f"the domain {path}")
    if model is not None and is_code(model):
        found.append(f"the model {model}")
    return tuple(found)
