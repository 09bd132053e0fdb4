"""Laws drawn at random."""

from __future__ import annotations

from hypothesis import strategies as st

from dokimos.laws.language import syntax as laws

NAMES = st.sampled_from(["x1", "x2", "v1", "income", "a_b", "f3", "nullable", "trueish", "input_", "in2"])
BINARY = ("==>", "||", "&&", "<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "/", "%")

_LITERALS = st.one_of(
    st.booleans(),
    st.none(),
    st.integers(0, 2**63 - 1),
    st.floats(0, allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
).map(laws.Literal)


def _grown(inner: st.SearchStrategy[laws.Expression]) -> st.SearchStrategy[laws.Expression]:
    changes = st.tuples(st.one_of(NAMES, st.integers(0, 99)), inner)
    return st.one_of(
        st.builds(laws.Unary, st.sampled_from(["!", "-"]), inner),
        st.builds(laws.Binary, st.sampled_from(BINARY), inner, inner),
        st.builds(laws.Call, NAMES, st.lists(inner, max_size=3).map(tuple)),
        st.builds(laws.FeatureOf, inner, NAMES),
        st.builds(laws.Update, inner, st.lists(changes, min_size=1, max_size=2).map(tuple)),
        st.builds(laws.ForAll, NAMES, inner, inner, inner),
    )


EXPRESSIONS = st.recursive(st.one_of(_LITERALS, NAMES.map(laws.Name)), _grown, max_leaves=12)

COMMENTS = st.sampled_from(["", "", " # why", " // why", " /* why */", " /* two\nlines */ "])
GAPS = st.sampled_from(["", " ", "\n", "\n\n\n", "\n  "])
BLOCKS = st.sampled_from(
    [
        "",
        " d = predict(x1) ",
        "\n  d = predict(x1)\n",
        "\nd = {'}': 1}\n",
        " # note }\n   d = 1\n\n   if d:\n       d = 2  # }\n",
        '\n    d = """a\n  b"""\n',
        " d = 1\n   e = 2\n",
    ]
)
