"""Properties as the readers state them: bounds on single inputs in the boxes, one case for each box."""

from fractions import Fraction
from math import prod

from hypothesis import strategies as st

from dokimos.suites.vnnlib.model import Box, Case, Conjunction, Linear, Property, Relation, Signature, Terms

NUMBERS = st.one_of(
    st.decimals(-1000, 1000, places=3).map(Fraction),
    st.floats(-1e6, 1e6, width=32).map(Fraction),
    st.integers(-5, 5).map(Fraction),
)
COEFFICIENTS = st.one_of(st.sampled_from([Fraction(1), Fraction(-1)]), NUMBERS.filter(bool))


def terms(size: int) -> st.SearchStrategy[Terms]:
    chosen = st.dictionaries(st.integers(0, size - 1), COEFFICIENTS, max_size=3)
    return chosen.map(lambda d: tuple(sorted(d.items())))


@st.composite
def linears(draw: st.DrawFn, inputs: int, outputs: int, box: Box, *, strict: bool) -> Linear:
    is_strict = strict and draw(st.booleans())
    linear = Linear(draw(terms(inputs)), draw(terms(outputs)), draw(NUMBERS), is_strict)
    if not linear.inputs and not linear.outputs:
        return Linear((), (), -1 - abs(linear.bound), is_strict)
    if linear.outputs or len(linear.inputs) > 1:
        return linear
    (index, c), *_ = linear.inputs
    if not strict:
        return Linear(linear.inputs, ((0, Fraction(1)),), linear.bound)
    # A strict bound is stated beside the box whose end it leaves out.
    return Linear(linear.inputs, (), c * (box.upper if c > 0 else box.lower)[index], True)


@st.composite
def cases(draw: st.DrawFn, inputs: int, outputs: int, *, strict: bool) -> Case:
    ends = [draw(st.tuples(NUMBERS, NUMBERS)) for _ in range(inputs)]
    box = Box(tuple(a for a, _ in ends), tuple(b for _, b in ends))
    constraint = linears(inputs, outputs, box, strict=strict)
    conjunctions: st.SearchStrategy[Conjunction] = st.lists(constraint, max_size=3).map(tuple)
    return Case(box, tuple(draw(st.lists(conjunctions, min_size=1, max_size=3))))


@st.composite
def flat_properties(draw: st.DrawFn) -> Property:
    inputs, outputs = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    found = draw(
        st.lists(cases(inputs, outputs, strict=False), min_size=1, max_size=3, unique_by=lambda c: c.box)
    )
    return Property((Signature("f", "X", (inputs,), "Y", (outputs,)),), tuple(found))


SHAPES = st.lists(st.integers(1, 2), max_size=3).map(tuple)


@st.composite
def tensor_properties(draw: st.DrawFn) -> Property:
    first = Signature("f", "X", draw(SHAPES), "Y", draw(SHAPES))
    networks = [first]
    relation = draw(st.sampled_from([None, *Relation]))
    if relation is Relation.FREE:
        networks.append(Signature("g", "X_g", draw(SHAPES), "Y_g", draw(SHAPES)))
    elif relation is not None:
        networks.append(Signature("g", "X_g", first.input_shape, "Y_g", first.output_shape, relation, "f"))
    inputs = sum(prod(n.input_shape) for n in networks)
    outputs = sum(prod(n.output_shape) for n in networks)
    found = draw(
        st.lists(cases(inputs, outputs, strict=True), min_size=1, max_size=3, unique_by=lambda c: c.box)
    )
    return Property(tuple(networks), tuple(found))
