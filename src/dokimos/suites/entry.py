"""One instance of a suite on disk, and the reading of its files.

This is all that the checker needs of a suite. The code that finds an entry's paths (`folder`) need not be
trusted: a truth names its network and its property by their hashes, and `check` compares these with the
contents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from dokimos.core.errors import MissingFile, UnreadableFile
from dokimos.core.files import read_regular
from dokimos.core.inputs import uncompressed
from dokimos.core.strict_json import parse
from dokimos.core.typed_values import convert
from dokimos.suites.instance import Certificate, Claim, Instance, Label, OwnAnswer, Semantics, Truth, sha256
from dokimos.suites.vnnlib.text import parse_decimal

if TYPE_CHECKING:
    from dokimos.networks.graph import Network
    from dokimos.suites.vnnlib.model import Property

# The JSON files of a suite, as types: suite.json and the truth files


#: The version changes whenever the contents of the files may change, including certificates' data.
FORMAT = 3
#: How a file begins that stands for one which Git LFS has not fetched; it is no longer than this.
_LFS, _LFS_BYTES = b"version https://git-lfs.github.com/spec/", 1024
T = TypeVar("T")


class SuiteForm(Struct, frozen=True, forbid_unknown_fields=True):
    """suite.json: who made the suite, from which recipe (a shipped one has a name), and the families."""

    format: int
    dokimos: str
    recipe: dict[str, Any]
    families: dict[str, str]
    suite: str = ""


class CertificateForm(Struct, frozen=True, forbid_unknown_fields=True):
    """The kind of a proof, and its data, whose format depends on the kind."""

    kind: str
    data: dict[str, Any]


class ClaimForm(Struct, frozen=True, forbid_unknown_fields=True):
    """What is claimed under one semantics; with a proof of its own, the answer that this proves."""

    proven: bool
    margin: Fraction | UnsetType = UNSET
    ulps: Annotated[int, Meta(gt=0, lt=2**16)] | None = None
    label: Label | None = None
    certificate: CertificateForm | None = None
    witness: tuple[Fraction, ...] | None = None


class HashesForm(Struct, frozen=True, forbid_unknown_fields=True):
    """The two files that a truth is about."""

    network: str
    property: str


class TruthForm(Struct, frozen=True, forbid_unknown_fields=True):
    """A truth file."""

    format: int
    label: Label
    semantics: dict[Semantics, ClaimForm]
    certificate: CertificateForm
    sha256: HashesForm
    witness: tuple[Fraction, ...] | None = None
    origin: dict[str, Any] = {}


def read_form(text: str, form: type[T], *, file: str | Path) -> T:
    """The content of a file of a suite. Raises UnreadableFile, naming the file and what is wrong."""
    document = parse(text, file=file)
    if isinstance(document, dict):
        found, name = document.get("format"), document.get("suite")
        if type(found) is not int or found != FORMAT:
            named = isinstance(name, str) and re.fullmatch(r"[\w-]{1,40}", name)
            raise UnreadableFile(
                file,
                f"it does not have format {FORMAT}, which this version reads; make the suite again with "
                f"`dokimos generate --suite {name if named else 'NAME'} --out FOLDER`",
            )
    what = f"a {'suite.json' if form is SuiteForm else 'truth file'} of format {FORMAT}"
    return convert(document, form, file=file, what=what, hooks={Fraction: _decimal})


def _decimal(value: Any) -> Fraction:
    if not isinstance(value, str):
        raise ValueError("expected a decimal, written as a string")
    return parse_decimal(value)


# Reads truth files, with one clear sentence for each file that is not one


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
    if (form.label is None) != (form.certificate is None) or (form.witness and not form.label):
        raise UnreadableFile(file, "an answer under one semantics needs its label and its certificate")
    own = None
    if form.label is not None and form.certificate is not None:
        proof = Certificate(form.certificate.kind, form.certificate.data)
        own = OwnAnswer(form.label, proof, form.witness)
    return Claim(form.proven, margin, form.ulps, own)


@dataclass(frozen=True)
class SuiteEntry:
    """One row of `instances.csv`, and where its files are. Contents are read when first needed."""

    name: str
    network_path: Path
    property_path: Path
    timeout_seconds: float
    family: str
    truth_path: Path

    @cached_property
    def network_sha256(self) -> str:
        """The hash of the network's content."""
        return sha256(read_content(self.network_path))

    @cached_property
    def property_sha256(self) -> str:
        """The hash of the property's content."""
        return sha256(read_content(self.property_path))

    @cached_property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of the network's input."""
        return read_onnx_file(self.network_path).input_shape

    def read_instance(self) -> Instance:
        """The instance, with the bytes of both files."""
        return Instance(
            name=self.name,
            network_file=read_content(self.network_path),
            property_file=read_content(self.property_path),
            timeout_seconds=self.timeout_seconds,
            family=self.family,
        )

    def read_truth(self) -> Truth | None:
        """What is known of the instance; None if the suite has no truth file for it."""
        if not exists(self.truth_path):
            return None
        return load_truth(read_text(self.truth_path), file=str(self.truth_path))


def read_content(path: Path) -> bytes:
    """The content of a file, decompressed if it is compressed. Raises UnreadableFile."""
    try:
        content = uncompressed(read_regular(path), file=str(path))
    except (FileNotFoundError, ValueError):
        raise MissingFile(path, "there is no such file") from None
    except OSError as error:
        raise UnreadableFile(path, f"it cannot be read ({error.strerror})") from None
    if content.startswith(_LFS) and len(content) < _LFS_BYTES:
        said = " ".join(content.decode("utf-8", "replace").split()[2:])
        raise MissingFile(path, f"Git LFS has left a pointer in its place ({said}); run `git lfs pull`")
    return content


def read_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        return read_content(path).decode("utf-8")
    except UnicodeDecodeError:
        raise UnreadableFile(path, "it is not UTF-8 text") from None


def exists(path: Path) -> bool:
    """Whether there is such a file; also False for a name that no file can have."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def read_onnx_file(path: Path) -> Network:
    """The network in a file, plain or compressed. Raises UnreadableFile or UnsupportedOp, with the path."""
    from dokimos.networks.reading.onnx_file import read_onnx  # it loads onnx

    return read_onnx(read_content(path), name=str(path))


def read_vnnlib_file(path: Path) -> Property:
    """The property in a file, plain or compressed."""
    from dokimos.suites.vnnlib.reader import read_vnnlib

    return read_vnnlib(read_content(path), file=str(path))
