"""A short glossary: the terms of a report, each explained in a sentence."""

from __future__ import annotations

GLOSSARY = (
    ("sat", "Some input in the box violates the property: there is a counterexample."),
    ("unsat", "No input in the box violates the property: it is proven to hold."),
    ("label", "The true answer, sat or unsat, with a proof that was checked in exact arithmetic."),
    ("witness", "The input that a verifier gives with sat, to show that the property is violated there."),
    (
        "twin",
        "The sat counterpart of an unsat instance, made by a small change that breaks the property.",
    ),
    ("margin", "How far an output is from violating the property; if negative, by how much it violates."),
    ("slack", "The margin with the opposite sign: at 0 or above, the point violates the property."),
    ("solved", "Decided, and a label or an exact witness confirms it."),
    ("wrong", "Decided, and a proof or an exact computation refutes it."),
    (
        "undecided",
        "No answer: unknown, timeout, out of memory, an error, or an operator that is not supported.",
    ),
    ("unchecked", "Decided, and nothing confirms or refutes it."),
    ("time", "Over solved runs and timeouts; a timeout counts with its limit. Errors have no time."),
)
"""Words and what they mean, in the order in which they build on each other."""
