"""Every knob of VeriStress-GT's Table 5: what it moves in the published instances, and what it moves here.

For each knob, its lowest and its highest published value, the component of the profile that shows it, and
the factor between the two: in the published profiles, and in instances of ours, drawn without twins and
measured on the spot. Factors are alike where neither is more than three times the other; where they are
not, the last column says why.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log
from pathlib import Path
from typing import Any

import dokimos
from dokimos.constructions import CONSTRUCTIONS
from dokimos.difficulty.components import component, symbol
from dokimos.difficulty.inspection import Inspection
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.suites.facts import ProfileSettings
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos_studies.command_line import positive
from dokimos_studies.veristress.published import COLUMNS, show

#: Factors count as alike if neither is more than this many times the other.
WITHIN = 3.0
#: Components that span magnitudes: their means are geometric.
GEOMETRIC = ("margin", "ibp_gap")
Knobs = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One knob: our instances at both ends, the published ones at both ends, and the recorded factor."""

    family: str
    knob: str
    fixed: Knobs = field(default_factory=dict)
    low: Knobs
    high: Knobs
    component: str
    published: tuple[Sequence[str], Sequence[str]]
    factor: float
    why: str = ""


def _numbered(prefix: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{number}" for number in numbers)


def _meap(*numbers: int) -> tuple[str, ...]:
    return _numbered("meap", *numbers)


def _dc(*numbers: int) -> tuple[str, ...]:
    return _numbered("dc_cnn", *numbers)


def _pb(*numbers: int) -> tuple[str, ...]:
    return _numbered("pb_cnn_", *numbers)


_PAIRS = {"inputs": 100, "classes": 10, "skips": 1}
_RADIUS = {"inputs": 50, "classes": 5, "budget": 4000}
_CORNERS = {"inputs": 100, "idle": 92, "classes": 10, "epsilon": 0.2, "margin": 4.0}
_CNN = {"classes": 10, "epsilon": 0.02}
_BIAS = {"colours": 3, "classes": 10, "epsilon": 0.05}
_LINEAR = {"classes": 10, "unstable": 0}
_SOFTMAX = {"classes": 50, "value_width": 8}
_SCALED = "the published weights grow with γ/ε, so this only scales an instance"
_NOT_CONTRACTIVE = (
    "the published networks do not contract (their ℓ∞ constants are 6.9 to 8.6), so margins grow with "
    "depth and width and swallow the knob"
)


def _cnn(**changed: float) -> Knobs:
    usual = {"depth": 6, "channels": 16, "contraction": 0.9, "slack": 1e-3, "unstable": 0.4}
    return {**_CNN, **usual, **changed}


def _bias(**changed: float) -> Knobs:
    return {**_BIAS, "size": 4, "depth": 2, "pairs": 8, "margin": 0.1, "gap": 0.05, **changed}


def _linear(**changed: float) -> Knobs:
    usual = {"tokens": 4, "width": 4, "epsilon": 0.05, "slack": 2.0, "gate": 0.5, "noise": 0.2}
    return {**_LINEAR, **usual, **changed}


def _softmax(**changed: float) -> Knobs:
    usual = {"tokens": 16, "width": 4, "alpha": 5.0, "epsilon": 1e-2, "slack": 1.05}
    return {**_SOFTMAX, **usual, **changed}


def _power(**changed: float) -> Knobs:
    usual = {"inputs": 100, "width": 100, "degree": 10, "buffer": 5e-3, "epsilon": 0.015}
    return {**usual, **changed}


ROWS = (
    Row(
        family="exclusive-pairs",
        knob="pairs",
        fixed=_PAIRS | {"gamma": 1e-3, "epsilon": 0.1},
        low={"pairs": 2},
        high={"pairs": 128},
        component="unstable",
        published=(_meap(1), _meap(4)),
        factor=1.74,
    ),
    Row(
        family="exclusive-pairs",
        knob="pairs",
        fixed=_PAIRS | {"gamma": 1e-3, "epsilon": 0.1},
        low={"pairs": 16},
        high={"pairs": 128},
        component="ibp_gap",
        published=(_meap(2), _meap(4)),
        factor=8.32,
    ),
    Row(
        family="exclusive-pairs",
        knob="epsilon",
        fixed=_PAIRS | {"pairs": 16, "gamma": 1e-3},
        low={"epsilon": 0.05},
        high={"epsilon": 0.5},
        component="ibp_gap",
        published=(_meap(5), _meap(8)),
        factor=0.871,
        why=_SCALED,
    ),
    Row(
        family="exclusive-pairs",
        knob="gamma",
        fixed=_PAIRS | {"pairs": 16, "epsilon": 0.1},
        low={"gamma": 1e-5},
        high={"gamma": 1e-3},
        component="margin",
        published=(_meap(11), _meap(9)),
        factor=100.0,
    ),
    Row(
        family="exclusive-pairs",
        knob="gamma",
        fixed=_PAIRS | {"pairs": 16, "epsilon": 0.1},
        low={"gamma": 1e-5},
        high={"gamma": 100.0, "scale": 16384.0},
        component="margin",
        published=(_meap(11), _meap(14)),
        factor=1e7,
    ),
    Row(
        family="exact-radius",
        knob="slack",
        fixed=_RADIUS | {"width": 20, "last_width": 10, "distance": 0.2},
        low={"slack": 0.5},
        high={"slack": 0.99999},
        component="ibp_gap",
        published=(_numbered("milp", 1, 8, 15), _numbered("milp", 6, 13, 20)),
        factor=28.6,
    ),
    Row(
        family="exact-radius",
        knob="width",
        fixed=_RADIUS | {"slack": 0.999},
        low={"width": 5, "distance": 0.3},
        high={"width": 100, "distance": 0.015},
        component="ibp_gap",
        published=(_numbered("milp", 22, 27), _numbered("milp", 26, 31)),
        factor=305.0,
    ),
    Row(
        family="convex-corners",
        knob="scale",
        fixed=_CORNERS | {"hinges": 16},
        low={"scale": 1e-2},
        high={"scale": 1e6},
        component="ibp_gap",
        published=(_numbered("rc", 4, 5, 6), _numbered("rc", 16, 17, 18)),
        factor=1.01e8,
    ),
    Row(
        family="convex-corners",
        knob="hinges",
        fixed=_CORNERS,
        low={"hinges": 16},
        high={"hinges": 4096},
        component="ibp_gap",
        published=(_numbered("rc", 19), _numbered("rc", 22)),
        factor=327.0,
    ),
    Row(
        family="constant-on-box",
        knob="depth",
        fixed={"inputs": 100, "classes": 10, "epsilon": 0.1},
        low={"depth": 1},
        high={"depth": 50},
        component="nonlinear_units",
        published=(_numbered("ep", 1), _numbered("ep", 5)),
        factor=1.0,
        why="the published parameter is misspelt and ignored: the five are one network",
    ),
    Row(
        family="contractive-cnn",
        knob="depth",
        low=_cnn(depth=2),
        high=_cnn(depth=10),
        component="ibp_gap",
        published=(_dc(1, 6), _dc(5, 10)),
        factor=3.77,
        why=_NOT_CONTRACTIVE,
    ),
    Row(
        family="contractive-cnn",
        knob="channels",
        low=_cnn(channels=4),
        high=_cnn(channels=64),
        component="unstable",
        published=(_dc(41, 46), _dc(45, 50)),
        factor=1.19,
        why=_NOT_CONTRACTIVE,
    ),
    Row(
        family="contractive-cnn",
        knob="contraction",
        low=_cnn(contraction=0.7),
        high=_cnn(contraction=0.98),
        component="margin",
        published=(_dc(11, 16), _dc(15, 20)),
        factor=7.53,
        why=_NOT_CONTRACTIVE,
    ),
    Row(
        family="contractive-cnn",
        knob="slack",
        low=_cnn(slack=1e-4),
        high=_cnn(slack=0.1),
        component="margin",
        published=(_dc(25, 30), _dc(21, 26)),
        factor=1.01,
        why=_NOT_CONTRACTIVE,
    ),
    Row(
        family="contractive-cnn",
        knob="unstable",
        low=_cnn(unstable=0.1),
        high=_cnn(unstable=0.7),
        component="unstable",
        published=(_dc(31, 36), _dc(35, 40)),
        factor=1.26,
        why="with random biases half of the published ReLUs are unstable whatever the knob",
    ),
    Row(
        family="paired-bias",
        knob="pairs",
        low=_bias(pairs=2),
        high=_bias(pairs=32),
        component="unstable",
        published=(_pb(1, 6), _pb(5, 10)),
        factor=1.19,
    ),
    Row(
        family="paired-bias",
        knob="margin",
        low=_bias(margin=1e-3),
        high=_bias(margin=1.0),
        component="ibp_gap",
        published=(_pb(15, 20), _pb(11, 16)),
        factor=0.0194,
    ),
    Row(
        family="paired-bias",
        knob="gap",
        low=_bias(gap=0.01),
        high=_bias(gap=0.2),
        component="ibp_gap",
        published=(_pb(21, 26), _pb(25, 30)),
        factor=0.562,
    ),
    Row(
        family="paired-bias",
        knob="depth",
        low=_bias(depth=1),
        high=_bias(depth=4),
        component="ibp_gap",
        published=(_pb(31, 35), _pb(34, 38)),
        factor=5.39,
    ),
    Row(
        family="paired-bias",
        knob="size",
        low=_bias(size=4),
        high=_bias(size=16),
        component="gradient_dimension",
        published=(_pb(39, 43), _pb(42, 46)),
        factor=15.6,
    ),
    Row(
        family="linear-attention",
        knob="tokens",
        low=_linear(tokens=2, width=2),
        high=_linear(tokens=6, width=6),
        component="gradient_dimension",
        published=(_numbered("ld", 7), _numbered("ld", 9)),
        factor=6.34,
    ),
    Row(
        family="linear-attention",
        knob="width",
        low=_linear(width=4),
        high=_linear(width=12),
        component="gradient_dimension",
        published=(_numbered("ld", 10), _numbered("ld", 12)),
        factor=3.12,
    ),
    Row(
        family="linear-attention",
        knob="value_width",
        low=_linear(value_width=2),
        high=_linear(value_width=8),
        component="margin",
        published=(_numbered("ld", 13), _numbered("ld", 15)),
        factor=1.26,
    ),
    Row(
        family="linear-attention",
        knob="epsilon",
        low=_linear(epsilon=0.02),
        high=_linear(epsilon=0.08),
        component="margin",
        published=(_numbered("ld", 1), _numbered("ld", 3)),
        factor=4.85,
    ),
    Row(
        family="linear-attention",
        knob="slack",
        low=_linear(slack=1.1),
        high=_linear(slack=3.0),
        component="margin",
        published=(_numbered("ld", 4), _numbered("ld", 6)),
        factor=3.78,
    ),
    Row(
        family="linear-attention",
        knob="gate, noise",
        low=_linear(gate=0.3, noise=0.1),
        high=_linear(gate=0.8, noise=0.3),
        component="margin",
        published=(_numbered("ld", 16), _numbered("ld", 18)),
        factor=6.23,
        why="the published attention is not normalised, so larger weights give more; here "
        "only their ratio counts",
    ),
    Row(
        family="softmax-attention",
        knob="tokens",
        low=_softmax(tokens=2, epsilon=1e-3),
        high=_softmax(tokens=32, epsilon=1e-3),
        component="gradient_dimension",
        published=(_numbered("fp", 7), _numbered("fp", 9)),
        factor=9.91,
    ),
    Row(
        family="softmax-attention",
        knob="width",
        low=_softmax(width=4, epsilon=1e-3),
        high=_softmax(width=16, epsilon=1e-3),
        component="gradient_dimension",
        published=(_numbered("fp", 10), _numbered("fp", 12)),
        factor=3.41,
    ),
    Row(
        family="softmax-attention",
        knob="alpha",
        low=_softmax(alpha=2.0),
        high=_softmax(alpha=10.0),
        component="margin",
        published=(_numbered("fp", 4), _numbered("fp", 6)),
        factor=4.78,
    ),
    Row(
        family="softmax-attention",
        knob="epsilon",
        low=_softmax(epsilon=5e-4),
        high=_softmax(epsilon=1e-2),
        component="margin",
        published=(_numbered("fp", 1), _numbered("fp", 3)),
        factor=20.6,
        why="with the sharp constant of the softmax the first order of the bound is almost used up, and "
        "what is left grows like ε²",
    ),
    Row(
        family="softmax-attention",
        knob="slack",
        low=_softmax(slack=1.00001),
        high=_softmax(slack=5.0),
        component="margin",
        published=(_numbered("fp", 17), _numbered("fp", 13)),
        factor=5.03,
    ),
    Row(
        family="polynomial",
        knob="inputs",
        low=_power(inputs=50),
        high=_power(inputs=100),
        component="gradient_dimension",
        published=(("poly01_easy_N50_d10",), ("poly06_deg12",)),
        factor=1.82,
    ),
    Row(
        family="polynomial",
        knob="degree",
        low=_power(degree=2),
        high=_power(degree=22),
        component="margin",
        published=(("poly02_easy_d2",), ("poly16_deg22",)),
        factor=5.02e9,
        why="published units are well above 1 before they are raised to the power; here at most 1, and "
        "the same share of them counts at every degree",
    ),
    Row(
        family="polynomial",
        knob="width",
        low=_power(width=50),
        high=_power(width=500),
        component="gradient_dimension",
        published=(("poly04_easy_d10_h50",), ("poly05_easy_d10_h500",)),
        factor=0.967,
    ),
    Row(
        family="polynomial",
        knob="buffer",
        low=_power(buffer=1e-4, epsilon=0.0199),
        high=_power(buffer=5e-3),
        component="margin",
        published=(("poly21_delta1e4",), ("poly04_easy_d10_h50",)),
        factor=29.1,
    ),
)


@dataclass(frozen=True)
class Found:
    """What a knob moves here, by this factor, between these two means."""

    row: Row
    low: float
    high: float

    @property
    def factor(self) -> float:
        """The mean at the upper end by that at the lower one."""
        return self.high / self.low

    @property
    def is_alike(self) -> bool:
        """Whether the factor is within `WITHIN` of the published one, and so points the same way."""
        ratio = self.factor / self.row.factor
        return 1 / WITHIN <= ratio <= WITHIN


def measured(row: Row, *, seeds: int, samples: int) -> Found:
    """Our instances at both ends, drawn without twins, and the means of the component."""
    ends = []
    for end in (row.low, row.high):
        values = [value(row, {**row.fixed, **end}, seed, samples) for seed in range(1, seeds + 1)]
        ends.append(mean(row.component, values))
    return Found(row, *ends)


def value(row: Row, knobs: Knobs, seed: int, samples: int) -> float:
    """The component of one instance."""
    drawn = CONSTRUCTIONS[row.family].draw(
        seed=seed, timeout_seconds=60, disguise=(), with_twin=False, knobs=knobs
    )
    instance = drawn.instances[0].instance
    seen = Inspection(
        read_onnx(instance.network_file),
        read_vnnlib(instance.property_file, file="property"),
        ProfileSettings(samples=samples),
    )
    found = component(row.component)(seen).value
    assert found is not None
    return found


def mean(name: str, values: Sequence[float]) -> float:
    """The mean, geometric for what spans magnitudes."""
    if name in GEOMETRIC:
        return exp(sum(log(value) for value in values) / len(values))
    return sum(values) / len(values)


def published_factor(row: Row, profiles: Mapping[str, Mapping[str, str]]) -> float:
    """The factor by the published profiles."""
    column = COLUMNS.get(row.component, "n_total_neurons")
    ends = [mean(row.component, [float(profiles[name][column]) for name in end]) for end in row.published]
    return ends[1] / ends[0]


def page(found: Sequence[Found], seeds: int) -> Iterator[str]:
    """The page."""
    yield "# Every knob of Table 5, moved"
    yield ""
    yield from (__doc__ or "").splitlines()[2:]
    yield ""
    yield f"Made by `dokimos-studies knobs --seeds {seeds}`, dokimos {dokimos.__version__}."
    yield ""
    yield "| family | knob | from | to | measured | published factor | here | |"
    yield "| --- | --- | --- | --- | --- | ---: | ---: | --- |"
    for one in found:
        row = one.row
        low, high = ({**row.fixed, **end}[row.knob.split(",")[0]] for end in (row.low, row.high))
        name = symbol(row.component).replace("|", "")
        said = row.why or ("alike" if one.is_alike else "**not alike**")
        yield (
            f"| {row.family} | `{row.knob}` | {low:g} | {high:g} | {name} | "
            f"{row.factor:.3g} | {one.factor:.3g} ({one.low:.3g} to {one.high:.3g}) | {said} |"
        )


def main() -> int:
    """Measure all rows and print or write the page; 1 if a knob without a reason is not alike."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=positive, default=3, help="instances at each end (3)")
    parser.add_argument("--samples", type=positive, default=1000, help="samples of a profile (1000)")
    parser.add_argument("--out", type=Path, help="the page to write instead of printing it")
    given = parser.parse_args()
    found = [measured(row, seeds=given.seeds, samples=given.samples) for row in ROWS]
    show(list(page(found, given.seeds)), given.out)
    return int(any(not one.is_alike and not one.row.why for one in found))
