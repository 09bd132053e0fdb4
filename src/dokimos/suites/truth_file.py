"""Reads truth files, with one clear sentence for each file that is not one."""

from __future__ import annotations

from msgspec import UNSET

from dokimos.core.errors import UnreadableFile
from dokimos.suites.forms import ClaimForm, TruthForm, read_form
from dokimos.suites.instance import Certificate, Claim, Truth


def load_truth(text: str, *, file: str) -> Truth:
    """Read a truth file. Raises UnreadableFile, naming the file and what is wrong."""
    return truth_of(read_form(text, TruthForm, file=file), file=file)


def truth_of(form: TruthForm, *, file: str) -> Truth:
    """What a truth file says. Raises UnreadableFile if a margin is negative."""
    return Truth(
        label=form.label,
        claims={semantics: _claim(claim, file) for semantics, claim in form.semantics.items()},
        certificate=Certificate(form.certificate.kind, form.certificate.data),
        network_sha256=form.sha256.network,
        property_sha256=form.sha256.property,
        witness=form.witness,
    )


def _claim(form: ClaimForm, file: str) -> Claim:
    margin = None if form.margin is UNSET else form.margin
    if margin is not None and margin < 0:
        raise UnreadableFile(file, "a margin is negative")
    return Claim(form.proven, margin, form.ulps)
