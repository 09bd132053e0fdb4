"""What really happens at a witness: over the reals, and in floats as onnxruntime computes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import InputError, UnreadableFile
from dokimos.core.inputs import uncompressed
from dokimos.engine.runtimes.sessions import (
    NO_RUNTIME,
    Replayer,
    load_session,
    nearest_float,
    nearest_point,
)
from dokimos.judging.rules import INPUT_TOLERANCE
from dokimos.judging.verdicts import Replay
from dokimos.networks.graph import Network
from dokimos.networks.reading.onnx_file import read_onnx
from dokimos.networks.semantics.exact import Undecided
from dokimos.suites.vnnlib.model import Box, Linear, Point, Property
from dokimos.suites.vnnlib.reader import read_vnnlib
from dokimos.suites.vnnlib.violation import outside_by, violation_at

# A cache of networks: many instances of a suite share the same file


class RecentNetworks:
    """Reads networks, and keeps the latest ones as long as their files total at most `most_bytes`."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._known: dict[bytes, Network] = {}
        self._lock = Lock()

    def read(self, content: bytes, *, name: str) -> Network:
        """`read_onnx`, or what it gave for the same content before."""
        with self._lock:
            known = self._known.pop(content, None)
        network = read_onnx(content, name=name) if known is None else known
        with self._lock:
            self._known[content] = network
            while sum(map(len, self._known)) > self._most_bytes:
                del self._known[next(iter(self._known))]
        return network


#: What judging keeps.
NETWORKS = RecentNetworks(most_bytes=1 << 26)


# An instance as the referee of a competition sees it: a property in doubles, the network in onnxruntime


Doubles = NDArray[np.float64]

#: Onnxruntime's level for fatal problems: lesser ones reach the caller as exceptions, not on stderr.
_FATAL = 4
_TYPES: dict[str, Any] = {
    "tensor(float16)": np.float16,
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
}


@dataclass(frozen=True)
class RefereeCase:
    """A box, in doubles, and the conjunctions of constraints that make a point of it unsafe."""

    lower: Doubles
    upper: Doubles
    any_of: tuple[tuple[Linear, ...], ...]


class Referee:
    """One instance, ready to examine many witnesses; `name` is its name in messages.

    Raises UnreadableFile, on first use, if onnxruntime cannot run the network or the property cannot be
    read.
    """

    def __init__(self, network_file: bytes, property_file: bytes, name: str) -> None:
        self._network_file = network_file
        self._property_file = property_file
        self._name = name
        self._seen: dict[Point, Doubles | None] = {}

    @cached_property
    def cases(self) -> tuple[RefereeCase, ...]:
        """The property, its bounds rounded to doubles."""
        asked = read_vnnlib(self._property_file, file=f"the property of {self._name}")
        return tuple(
            RefereeCase(doubles(case.box.lower), doubles(case.box.upper), case.any_of)
            for case in asked.cases
        )

    def rounded(self, values: Doubles) -> Doubles:
        """`values` rounded to the type of the network's input."""
        with np.errstate(over="ignore", under="ignore"):
            return values.astype(self._input_type).astype(np.float64)

    def outputs(self, witness: Point) -> Doubles | None:
        """The first output at `witness`, flat; None if the witness does not have the size of the input.

        The witness is read in doubles and rounded to the network's input type; open dimensions are 1.
        """
        if witness not in self._seen:
            self._seen[witness] = self._run(witness)
        return self._seen[witness]

    def _run(self, witness: Point) -> Doubles | None:
        from onnxruntime import RunOptions

        source = self._session.get_inputs()[0]
        shape = tuple(size if isinstance(size, int) and size > 0 else 1 for size in source.shape)
        if prod(shape) != len(witness):
            return None
        options = RunOptions()
        options.log_severity_level = _FATAL
        with np.errstate(over="ignore", under="ignore"):
            tensor = doubles(witness).astype(self._input_type).reshape(shape)
        try:
            first = self._session.run(None, {source.name: tensor}, options)[0]
        except Exception as problem:  # onnxruntime's errors share no base class of their own
            raise self._failure("onnxruntime fails on its witness", problem) from None
        return np.asarray(first, dtype=np.float64).reshape(-1)

    @cached_property
    def _session(self) -> Any:
        name = f"the network of {self._name}"
        session = load_session(uncompressed(self._network_file, file=name), name, optimised=True)
        if len(session.get_inputs()) != 1:
            raise self._failure("it has several inputs", None)
        return session

    @cached_property
    def _input_type(self) -> Any:
        kind = self._session.get_inputs()[0].type
        if kind not in _TYPES:
            raise self._failure(f"its input is a {kind}, not a tensor of floats", None)
        return _TYPES[kind]

    def _failure(self, what: str, problem: Exception | None) -> UnreadableFile:
        line = (
            "" if problem is None else f": {str(problem).strip().partition(chr(10))[0][:300].rstrip('.')}"
        )
        return UnreadableFile(f"the network of {self._name}", f"{what}{line}.")


def doubles(values: Sequence[Fraction]) -> Doubles:
    """The doubles nearest to `values`; infinite if they are beyond all doubles."""
    return np.array([double(value) for value in values], dtype=np.float64)


def double(value: Fraction) -> float:
    """The double nearest to `value`; infinite if that is beyond all doubles."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


_FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True)
class Question:
    """One instance, read from the contents of its files, ready for replaying witnesses.

    Both files may be compressed; `name` and `places` are the names of the instance and of its two files in
    messages.
    """

    network_file: bytes
    property_file: bytes
    name: str
    places: tuple[str, str] | None = None

    @property
    def _places(self) -> tuple[str, str]:
        return self.places or (f"the network of {self.name}", f"the property of {self.name}")

    @cached_property
    def network(self) -> Network:
        """The network, for exact evaluation."""
        return NETWORKS.read(self.network_file, name=self._places[0])

    @cached_property
    def property(self) -> Property:
        """The property, in the exact numbers of its file."""
        found = read_vnnlib(self.property_file, file=self._places[1])
        if (found.input_size, found.output_size) != (self.network.input_size, self.network.output_size):
            raise InputError(
                f"{self.name}: the property has {found.input_size} inputs and {found.output_size} "
                f"outputs, the network has {self.network.input_size} and {self.network.output_size}; "
                "check that the two files belong together."
            )
        return found

    @cached_property
    def replayer(self) -> Replayer | None:
        """The network in onnxruntime, or in its replacement; None if neither runs it."""
        try:
            return Replayer(self.network_file, name=self._places[0])
        except InputError:
            return None

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of the network's numbers."""
        return self.network.dtype if self.replayer is None else self.replayer.dtype

    @cached_property
    def referee(self) -> Referee:
        """The instance as the rules of a competition see it."""
        return Referee(self.network_file, self.property_file, self.name)


@dataclass(frozen=True)
class WitnessReplays:
    """A witness as its verifier printed it, and at the nearest point of the network's type.

    Tools print float32 values with too few digits, or the doubles they compute with; both points are
    points of R^n, and either may show the property to be `sat`. If the witness is not a point of the
    network's input space (`problem` says why) there are no replays; if it is out of the range of the
    network's type, `in_floats` is None; if it is already of that type, `in_floats` is the same replay.

    `clipped` is the replay at the witness moved into a box that it leaves by no more than the competitions
    tolerate (see `clip`); there is none if one of the two points violates exactly. The clipped point is not
    the verifier's, but if it violates exactly the property is `sat` all the same. `can_be_checked` is False
    if Dokimos cannot evaluate the network. `points` has the points of the three replays.
    """

    as_written: Replay | None
    in_floats: Replay | None
    problem: str = ""
    clipped: Replay | None = None
    can_be_checked: bool = True
    points: tuple[Point, Point, Point] = ((), (), ())

    @property
    def exact(self) -> Replay | None:
        """The replay that shows a violation over the reals inside the box, if there is one."""
        return next((r for r in self._both if r.in_box and r.violates_exactly), None)

    @property
    def floating(self) -> Replay | None:
        """The replay at a point of the box in the network's type that violates there, if there is one."""
        replay = self.in_floats
        return replay if replay and replay.in_box and replay.violates_in_onnxruntime else None

    @property
    def violates_once_clipped(self) -> bool:
        """Whether the clipped point violates over the reals."""
        return self.clipped is not None and self.clipped.violates_exactly

    @property
    def clipped_by(self) -> Fraction:
        """The largest distance by which clipping moves a coordinate."""
        written, _, moved = self.points
        return max((abs(x - y) for x, y in zip(written, moved, strict=False)), default=Fraction(0))

    @property
    def proves_sat(self) -> bool:
        """Whether a point of the box violates over the reals: the witness, or the clipped witness."""
        return self.exact is not None or self.violates_once_clipped

    @property
    def shown(self) -> tuple[Point, Replay] | None:
        """The point that `proves_sat`, and the replay there."""
        replays = (self.as_written, self.in_floats, self.clipped)
        for point, replay in zip(self.points, replays, strict=True):
            if replay is not None and replay.in_box and replay.violates_exactly:
                return point, replay
        return None

    @property
    def is_refuted(self) -> bool:
        """Whether the witness certainly does not violate: neither exactly, nor clipped, nor in floats."""
        looked_at = (*self._both, *(() if self.clipped is None else (self.clipped,)))
        in_box = any(replay.in_box for replay in looked_at)
        return (
            self.can_be_checked
            and not (in_box and any(replay.runtime == NO_RUNTIME for replay in looked_at))
            and all(replay.is_decided for replay in looked_at)
            and not self.proves_sat
            and self.floating is None
        )

    @property
    def telling(self) -> Replay | None:
        """The replay to show: one that violates, or else the one closest to the box."""
        inside = next((r for r in self._both if r.in_box), None)
        return self.exact or self.floating or inside or self.as_written

    @property
    def misses_by(self) -> Fraction:
        """How far the replay to show is outside of the box, or from violating; 0 if that is not known."""
        replay = self.telling
        return Fraction(0) if replay is None else max(replay.outside_by, -(replay.violation or Fraction(0)))

    @property
    def _both(self) -> tuple[Replay, ...]:
        return tuple(r for r in (self.as_written, self.in_floats) if r is not None)


def replay_witness(question: Question, witness: Point) -> WitnessReplays:
    """Replay `witness` at both points, exactly and in the network's own type."""
    size = question.property.input_size
    if len(witness) != size:
        given = f"has {len(witness)} coordinates where the network takes {size}"
        return WitnessReplays(None, None, f"the witness {given if witness else 'is not a list of numbers'}")
    near = nearest_point(witness, question.dtype)
    if near is None:
        return WitnessReplays(_replay(question, witness, None), None, points=(witness, (), ()))
    in_floats = _replay(question, near, near)
    as_written = in_floats if near == witness else _replay(question, witness, near)
    found = WitnessReplays(as_written, in_floats, points=(witness, near, ()))
    if found.exact:
        return found
    moved, clipped = _replay_clipped(question, witness)
    return replace(found, clipped=clipped, points=(witness, near, moved))


def clip(box: Box, point: Point) -> Point | None:
    """`point` moved into `box`, if no coordinate leaves it by more than is tolerated; else None.

    Tolerated are the competitions' 1e-4 and, since the numbers around a large bound are further apart than
    that, the distance from the bound to the next float32 number beyond it: printing or reading a bound in
    float32 can have this effect. It is measured as written or at the nearest float32 number (which decimals
    seldom give to the last digit).
    """
    moved = []
    for low, x, high in zip(box.lower, point, box.upper, strict=True):
        bound = low if x < low else high
        if low > high or (not low <= x <= high and _distance(x, bound) > _tolerated_at(bound)):
            return None
        moved.append(min(max(x, low), high))
    return tuple(moved)


def _distance(x: Fraction, bound: Fraction) -> Fraction:
    """How far `x` is from `bound`: it, or the float32 number nearest to it."""
    near = nearest_float(x, _FLOAT32)
    return abs(x - bound) if near is None else min(abs(x - bound), abs(near - bound))


def _tolerated_at(bound: Fraction) -> Fraction:
    """How far a witness may be beyond `bound`: see `clip`."""
    near = nearest_float(abs(bound), _FLOAT32)
    if near is None or near < 1:
        return INPUT_TOLERANCE
    next_one = np.nextafter(np.float32(float(near)), np.float32(np.inf))
    step = Fraction(float(next_one)) - near if np.isfinite(next_one) else Fraction(0)
    return max(INPUT_TOLERANCE, step)


def _replay_clipped(question: Question, witness: Point) -> tuple[Point, Replay | None]:
    """The witness clipped to a box that it leaves by no more than is tolerated, and the replay there.

    A box where it violates is preferred. The runtime is run at the point of the network's type that is
    nearest to the clipped one, as for other replays.
    """
    found: tuple[Point, Replay | None] = ((), None)
    for case in question.property.cases:
        moved = clip(case.box, witness)
        if moved is None or moved == witness:
            continue
        replay = _replay(question, moved, nearest_point(moved, question.dtype))
        if replay.violates_exactly:
            return moved, replay
        found = found if found[1] else (moved, replay)
    return found


def _run(question: Question, near: Point | None) -> tuple[str, tuple[float, ...]]:
    """What runs the network, and what it computes at `near`: nothing if there is no such point."""
    replayer = question.replayer
    if replayer is None:
        return NO_RUNTIME, ()
    if near is None:
        return replayer.runtime, ()
    row = np.array([[float(x) for x in near]], dtype=replayer.dtype)
    try:
        return replayer.runtime, tuple(float(y) for y in replayer(row)[0])
    except InputError:
        return NO_RUNTIME, ()


def _replay(question: Question, point: Point, near: Point | None) -> Replay:
    """What happens at `point`; the runtime is run at `near`, the nearest point of the network's type.

    Whether `point` is in the box is a question about `point` for the runtime too, not about `near`.
    """
    asked = question.property
    name, runtime = _run(question, near)
    finite = bool(runtime) and bool(np.all(np.isfinite(runtime)))
    in_runtime = finite and asked.unsafe(point, [Fraction(y) for y in runtime])
    holding = [case for case in asked.cases if point in case.box]
    unknown = Replay(
        in_box=bool(holding),
        outside_by=min((outside_by(case.box, point) for case in asked.cases), default=Fraction(0)),
        violates_exactly=False,
        violation=None,
        exact_outputs=(),
        violates_in_onnxruntime=in_runtime,
        onnxruntime_outputs=runtime,
        witness_in_float32=point == near,
        runtime=name,
        float_type=str(question.dtype),
        is_decided=not any(case.any_of for case in holding),
    )
    try:
        found = violation_at(question.network, asked, point)
    except Undecided:
        return unknown
    return replace(
        unknown,
        violates_exactly=found.violates is True,
        violation=found.margin_lower,
        exact_outputs=found.outputs.middle,
        output_error=found.outputs.width / 2,
        is_decided=found.violates is not None,
    )
