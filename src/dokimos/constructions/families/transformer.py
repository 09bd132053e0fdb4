"""Transformer: layers of attention with fixed routes, and of ReLUs in cancelling pairs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dokimos.checker.proofs.fixed_routing import MOST_NUMBERS, RoutedNetwork
from dokimos.constructions.base import Construction, Unusable, dyadic
from dokimos.constructions.draft import (
    Draft,
    ball,
    first_class_loses,
    float32_below,
    inward,
    knob,
    random_point,
    siblings,
    towards,
)
from dokimos.constructions.tight_features import inside_by, lost_share
from dokimos.core.errors import ConstructionFailed, InvalidProof
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.instance import DEFAULT_ULPS, Certificate
from dokimos.suites.vnnlib.model import Box, Property

Array = NDArray[np.float64]

#: What generating takes for each weight and each number of the largest affine forms, as measured.
BYTES_A_WEIGHT, BYTES_A_NUMBER = 36, 32
#: More than this, with what the program itself needs, is more than 2 GB.
MOST_BYTES = 1_700_000_000
#: This many multiplications of affine forms take a CPU-minute and a half for each draw.
MOST_PRODUCTS = 500_000_000_000
#: How large the tokens' contents are at the centre.
CONTENT = 0.25
#: The remainder may take this share of what the lead at the centre has to spare.
MOST_REMAINDER = Fraction(1, 10)


@dataclass(frozen=True)
class Knobs:
    """The knobs of the transformer family."""

    size: int = knob(8, "height and width of the image, a multiple of patch", least=2, most=64)
    colours: int = knob(3, "channels of the image", least=1, most=8)
    patch: int = knob(2, "height and width of a patch; each is a token", least=1, most=32)
    width: int = knob(64, "how many numbers a token has, a multiple of heads", least=4, most=2048)
    heads: int = knob(4, "heads of attention in every layer", least=1, most=32)
    layers: int = knob(2, "layers, each of attention and of pairs of ReLUs", least=1, most=64)
    pairs: int = knob(1, "pairs of ReLUs in a layer, as a multiple of width", least=1, most=8)
    taps: int = knob(
        8, "how many numbers each number of the next tensor is computed from", least=1, most=256
    )
    gain: float = knob(
        0.5, "how large a layer's contribution is, relative to what it is added to", least=0.01, most=4.0
    )
    gap: float = knob(
        24.0, "how far the largest score is above the next without noise", least=1.0, most=80.0
    )
    noise: float = knob(0.03, "how much the image's contents move queries and keys", least=0.0, most=1.0)
    slack: float = knob(
        0.05,
        "how far the lead at the centre exceeds what the proof needs, as a share",
        least=1e-6,
        most=10.0,
    )
    epsilon: float = knob(0.03125, "radius of the box", least=0.001, most=1.0)
    classes: int = knob(3, "how many classes", least=2, most=100)

    @property
    def tokens(self) -> int:
        """How many patches there are."""
        return (self.size // self.patch) ** 2

    @property
    def code(self) -> int:
        """How many numbers of a token encode its place."""
        return 1 << (self.tokens - 1).bit_length()

    @property
    def weights(self) -> int:
        """How many weights the layers and the head have."""
        each = 4 * self.width**2 + 4 * self.pairs * self.width**2
        return self.layers * each + self.classes * self.tokens * self.width


class Transformer(Construction[Knobs]):
    """Patches of an image become tokens; a token has its content and, in ±1, a code of its place.

    Codes of different places are orthogonal. The queries of a head turn the code of place i into that of
    place π(i), π a random permutation for each head, and keys are codes, so that token i attends to token
    π(i): its score is `gap` above all others, apart from the effect of the contents, which the knob `noise`
    sets. Values and what the heads write are contents. Behind attention, pairs of ReLUs, ReLU(z) − ReLU(−z)
    = z, mix the contents of each token. Both are added to the token. So the network is affine up to e^−gap,
    and bounds that go layer by layer grow with the absolute values of all weights.

    Scores of the classes are affine in all tokens; class 0's lead at the centre exceeds what the affine
    function loses in its worst corner by the share `slack`. In the twin class 0's offset is lower by twice
    that, and it loses there. The gradient leads there: the twin catches tools whose bounds are unsound, not
    those whose attacks are weak.
    """

    family: ClassVar[str] = "transformer"
    summary: ClassVar[str] = (
        "layers of attention with fixed routes and pairs that cancel; a proof needs the whole affine map"
    )
    knobs_class = Knobs

    def construct(self, knobs: Knobs, rng: np.random.Generator) -> tuple[Draft, Draft]:
        """Draw layers and head; only class 0's offset differs between the two drafts."""
        _require_affordable(knobs)
        epsilon = inward(knobs.epsilon)
        shape = (knobs.colours, knobs.size, knobs.size)
        centre = random_point(int(np.prod(shape)), rng)
        builder = ModelBuilder(shape)
        body = _Body(builder, knobs, rng)
        body.embed(np.array([float(x) for x in centre]).reshape(shape))
        for _ in range(knobs.layers):
            body.attention()
            body.mixing()
        builder.flatten()
        rows = _head(knobs, rng)
        box = ball(centre, epsilon)
        question = first_class_loses(box, knobs.classes)

        def build(first: Fraction, others: list[Fraction]) -> bytes:
            return builder.copy().affine(rows, [first, *others]).build(knobs.classes)

        zeros = [Fraction(0)] * (knobs.classes - 1)
        leads = _leads(build(Fraction(0), zeros), question, box)
        slack, lost = Fraction(knobs.slack), lost_share(knobs.slack)
        offsets = [float32_below(lead.least - slack * max(lead.drop, leads[0].drop)) for lead in leads]
        if any(lead.remainder > MOST_REMAINDER * slack * lead.drop for lead in leads):
            raise ConstructionFailed(
                "transformer: the gap of the scores does not stay open over the box (other tokens add up "
                f"to {float(leads[0].remainder):.2g}); raise gap, or lower noise, epsilon or layers."
            )
        witness = towards(centre, leads[0].signs, -inside_by(epsilon, lost))
        step = max(dyadic(leads[0].drop * (slack + lost), 24), Fraction(1, 2**20))
        files = build(Fraction(0), offsets), build(-step, offsets)
        return siblings(question, Certificate("fixed-routing"), *files, witness)


def _require_affordable(knobs: Knobs) -> None:
    """Refuse what cannot be made before anything is drawn."""
    problem = ""
    inputs = knobs.colours * knobs.size**2
    numbers = (1 + inputs) * max(2 * knobs.pairs * knobs.width * knobs.tokens, inputs)
    products = (1 + inputs) * knobs.tokens * knobs.weights
    if knobs.size % knobs.patch:
        problem = (
            f"an image of {knobs.size} pixels cannot be cut into patches of {knobs.patch}; "
            "change size or patch"
        )
    elif knobs.width % knobs.heads:
        problem = f"{knobs.heads} heads cannot share {knobs.width} numbers; change width or heads"
    elif knobs.width // knobs.heads < knobs.code or knobs.width < knobs.code + 2:
        problem = (
            f"the gap cannot be reached: {knobs.tokens} tokens need {knobs.code} numbers in each head and "
            f"two more, but there are {knobs.width // knobs.heads}; raise width or patch, or lower heads"
        )
    elif numbers > MOST_NUMBERS or numbers * BYTES_A_NUMBER + knobs.weights * BYTES_A_WEIGHT > MOST_BYTES:
        problem = (
            f"these knobs make {knobs.weights:,} weights and affine forms of {numbers:,} numbers, which "
            f"take more than 2 GB (of the numbers at most {MOST_NUMBERS:,} are allowed); lower size, "
            "colours, width, pairs or layers"
        )
    elif products > MOST_PRODUCTS:
        problem = (
            f"these knobs make {products:.2g} multiplications of affine forms, more than the "
            f"{MOST_PRODUCTS:.2g} that take minutes; lower size, width, pairs or layers"
        )
    if problem:
        raise ConstructionFailed(f"transformer: {problem}.")


def _rounded(values: Array) -> Array:
    """The nearest float32 numbers."""
    return values.astype(np.float32).astype(np.float64)


def _reads(rng: np.random.Generator, inputs: int, outputs: int, taps: int, scale: float) -> Array:
    """A matrix [inputs, outputs]; each column has `taps` normal entries and the length `scale`, about."""
    taps = min(taps, inputs)
    matrix: Array = np.zeros((inputs, outputs))
    for column in matrix.T:
        column[rng.choice(inputs, size=taps, replace=False)] = rng.normal(size=taps)
    return _rounded(matrix * (scale / sqrt(taps)))


def _hadamard(size: int) -> Array:
    """Orthogonal rows of ±1; the size is a power of two."""
    rows: Array = np.ones((1, 1))
    while len(rows) < size:
        rows = np.block([[rows, rows], [rows, -rows]])
    return rows


class _Body:
    """The layers so far, and the tokens at the centre."""

    def __init__(self, builder: ModelBuilder, knobs: Knobs, rng: np.random.Generator) -> None:
        self.builder, self.knobs, self.rng = builder, knobs, rng
        self.codes = _hadamard(knobs.code)[rng.permutation(knobs.code)[: knobs.tokens]]
        self.contents = knobs.width - knobs.code

    def embed(self, image: Array) -> None:
        """Tokens: the contents of patches, shifted to be near 0 at the centre, and the codes."""
        knobs, rng = self.knobs, self.rng
        inputs = knobs.colours * knobs.patch**2
        filters = np.zeros((knobs.width, knobs.colours, knobs.patch, knobs.patch))
        filters[: self.contents] = _reads(rng, inputs, self.contents, inputs, 1.0).T.reshape(
            self.contents, knobs.colours, knobs.patch, knobs.patch
        )
        side = knobs.size // knobs.patch
        patches = image.reshape(knobs.colours, side, knobs.patch, side, knobs.patch)
        seen = np.einsum("dcij,cyixj->yxd", filters, patches).reshape(knobs.tokens, knobs.width)
        wanted = rng.normal(size=seen.shape) * CONTENT
        wanted[:, self.contents :] = self.codes
        self.builder.conv(filters, np.zeros(knobs.width), stride=knobs.patch)
        self.builder.reshape((1, knobs.width, knobs.tokens)).transpose()
        self.builder.plus(_rounded(wanted - seen)[None])

    def attention(self) -> None:
        """Each head's queries ask for the token that its permutation names."""
        knobs, rng, builder = self.knobs, self.rng, self.builder
        each, code = knobs.width // knobs.heads, knobs.code
        queries, keys = (
            np.concatenate(
                [
                    _reads(rng, self.contents, knobs.width, knobs.taps, knobs.noise),
                    np.zeros((code, knobs.width)),
                ]
            )
            for _ in range(2)
        )
        for head in range(knobs.heads):
            asked = self.codes.T @ self.codes[rng.permutation(knobs.tokens)] / code
            queries[self.contents :, head * each : head * each + code] = asked
            keys[self.contents :, head * each : head * each + code] = np.eye(code)
        values = np.zeros((knobs.width, knobs.width))
        values[: self.contents] = _reads(rng, self.contents, knobs.width, knobs.taps, 1.0)
        written = np.zeros((knobs.width, knobs.width))
        written[:, : self.contents] = _reads(rng, knobs.width, self.contents, knobs.taps, knobs.gain)
        source, split = builder.last, (1, knobs.tokens, knobs.heads, each)
        key = builder.times_matrix(keys).reshape(split).transpose((0, 2, 3, 1)).last
        value = builder.resume(source).times_matrix(values).reshape(split).transpose((0, 2, 1, 3)).last
        builder.resume(source).times_matrix(queries).reshape(split).transpose((0, 2, 1, 3)).times(key)
        builder.scaled(float(np.float32(knobs.gap / code))).softmax().times(value).transpose((0, 2, 1, 3))
        builder.reshape((1, knobs.tokens, knobs.width)).times_matrix(written).joined_with(source)

    def mixing(self) -> None:
        """Pairs of ReLUs that cancel, added to each token."""
        knobs, rng, source = self.knobs, self.rng, self.builder.last
        count = knobs.pairs * knobs.width
        inner = np.zeros((knobs.width, count))
        inner[: self.contents] = _reads(rng, self.contents, count, knobs.taps, 1.0)
        outer = np.zeros((count, knobs.width))
        outer[:, : self.contents] = _reads(rng, count, self.contents, knobs.taps, knobs.gain)
        bias = _rounded(rng.normal(size=count) * CONTENT)
        self.builder.times_matrix(np.concatenate([inner, -inner], axis=1))
        self.builder.plus(np.concatenate([bias, -bias])).relu()
        self.builder.times_matrix(np.concatenate([outer, -outer])).joined_with(source)


def _head(knobs: Knobs, rng: np.random.Generator) -> Array:
    """The rows of the classes over all tokens: of length 1, about, and blind to codes."""
    rows = rng.normal(size=(knobs.classes, knobs.tokens, knobs.width))
    rows[:, :, knobs.width - knobs.code :] = 0
    return _rounded(rows.reshape(knobs.classes, -1) / sqrt(knobs.tokens * (knobs.width - knobs.code)))


@dataclass(frozen=True)
class _Lead:
    """Class 0's score less another's over the box: at least `least`; affine but for `remainder`."""

    least: Fraction
    drop: Fraction
    remainder: Fraction
    signs: list[int]


def _leads(network: bytes, question: Property, box: Box) -> list[_Lead]:
    """The leads over all other classes, with the offsets that the network has."""
    try:
        routed = RoutedNetwork(read_onnx(network, name="transformer"), box, DEFAULT_ULPS)
    except InvalidProof as error:
        raise Unusable(str(error)) from error
    found = []
    for (constraint,) in question.cases[0].any_of:
        sums, remainder = routed.affine(constraint)
        drop = sum(map(abs, sums[1:]), Fraction(0))
        signs = [-1 if s < 0 else 1 for s in sums[1:]]
        found.append(_Lead(sums[0] - drop - remainder, drop, remainder, signs))
    return found
