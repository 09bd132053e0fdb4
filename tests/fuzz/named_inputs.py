"""Files that once took gigabytes, did not end, or ended in a traceback, by reader and name.

A path stands for a file that is a link to it.
"""

from __future__ import annotations

import gzip
import io
import json
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

Named = dict[str, bytes | Path]


def _model(
    nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], shape: list[int] | None = None
) -> bytes:
    """A network from x to y."""
    source = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape or [1, 2])
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n"])
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [source], [output], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _doubling(start: str, array: np.ndarray, times: int, op: str = "Concat") -> bytes:
    """One tensor joined with itself, again and again."""
    names = [start, *(f"t{k}" for k in range(times))]
    nodes = [helper.make_node(op, [a, a], [b], axis=0) for a, b in pairwise(names)]
    nodes += [
        helper.make_node("Cast", [names[-1]], ["f"], to=onnx.TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["f"], ["s"], keepdims=0),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    return _model(nodes, {start: array})


def networks() -> Named:
    large = np.array([2**14, 2**13], dtype=np.int64)
    summed = helper.make_node("ReduceSum", ["c"], ["s"], keepdims=0)
    add = helper.make_node("Add", ["x", "s"], ["y"])
    filled = [helper.make_node("ConstantOfShape", ["n"], ["c"])]
    ones = numpy_helper.from_array(np.ones(1, np.int64))
    several = [helper.make_node("ConstantOfShape", ["n"], [f"c{k}"]) for k in range(20)]
    expand = helper.make_node("Expand", ["x", "n"], ["c"])
    window = {"kernel_shape": [2**31, 2**31], "pads": [2**31 - 1] * 4}
    return {
        "a device": Path("/dev/zero"),
        "a bomb": gzip.compress(b"\0" * 2**20) * 300,
        "ConstantOfShape": _model([*filled, summed, add], {"n": large}),
        "ConstantOfShape of integers": _model(
            [
                helper.make_node("ConstantOfShape", ["n"], ["i"], value=ones),
                helper.make_node("Cast", ["i"], ["c"], to=onnx.TensorProto.FLOAT),
                summed,
                add,
            ],
            {"n": np.array([2**27], np.int64)},
        ),
        "twenty of ConstantOfShape": _model(
            [
                *several,
                helper.make_node("Concat", [f"c{k}" for k in range(20)], ["c"], axis=0),
                summed,
                add,
            ],
            {"n": np.array([2**13, 2**10], np.int64)},
        ),
        "doubling Concat": _doubling("a", np.zeros(2, np.float32), 40),
        "doubling Concat of integers": _doubling("a", np.zeros(2, np.int64), 40),
        "doubling Add of the input": _model(
            [
                *(helper.make_node("Concat", [a, a], [b], axis=0) for a, b in [("x", "d0")]),
                *(helper.make_node("Concat", [f"d{k}"] * 2, [f"d{k + 1}"], axis=0) for k in range(40)),
                helper.make_node("ReduceSum", ["d40"], ["y"], keepdims=0),
            ],
            {},
        ),
        "Expand of the input": _model([expand, summed, add], {"n": np.array([2**14, 2**13, 2], np.int64)}),
        "Expand of a constant": _model(
            [helper.make_node("Expand", ["a", "n"], ["c"]), summed, add],
            {"n": large, "a": np.zeros(1, np.float32)},
        ),
        "Expand of integers": _model(
            [
                helper.make_node("Expand", ["a", "n"], ["i"]),
                helper.make_node("Cast", ["i"], ["c"], to=onnx.TensorProto.FLOAT),
                summed,
                add,
            ],
            {"n": large, "a": np.zeros(1, np.int64)},
        ),
        "Range": _model(
            [
                helper.make_node("Range", ["a", "n", "d"], ["i"]),
                helper.make_node("Cast", ["i"], ["c"], to=onnx.TensorProto.FLOAT),
                summed,
                add,
            ],
            {"a": np.array(0), "n": np.array(2**40), "d": np.array(1)},
        ),
        "Gather": _model(
            [helper.make_node("Gather", ["a", "i"], ["c"], axis=0), summed, add],
            {"a": np.zeros((1, 2**15), np.float32), "i": np.zeros(2**15, np.int64)},
        ),
        "Pad": _model(
            [helper.make_node("Pad", ["x", "n"], ["y"])], {"n": np.array([0, 2**40, 0, 2**40], np.int64)}
        ),
        "a large input": _model([helper.make_node("Relu", ["x"], ["y"])], {}, [1, 2**28]),
        "an input of 65 axes": _model([helper.make_node("Relu", ["x"], ["y"])], {}, [1] * 65),
        "Unsqueeze to 65 axes": _model(
            [helper.make_node("Unsqueeze", ["x", "n"], ["y"])], {"n": np.arange(63, dtype=np.int64)}
        ),
        "windows in the padding": _model(
            [helper.make_node("MaxPool", ["x"], ["y"], **window)], {}, [1, 1, 2, 2]
        ),
        "a wide window": _model(
            [helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2**14] * 2, pads=[2**13] * 4)],
            {},
            [1, 1, 2**14, 2**14],
        ),
    }


def properties() -> Named:
    return {
        "a device": Path("/dev/zero"),
        "a bomb": gzip.compress(b" " * 2**20) * 300,
        "blanks": b" " * 400_000,
        "brackets": b"(" * 400_000,
        "a comment": b";" + b" (" * 200_000,
    }


DEEP = 100_000


def deep_json() -> Named:
    return {
        "deep": b"[" * DEEP + b"]" * DEEP,
        "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
        "deep enough to be read": b"[" * 900 + b"]" * 900,
        "a long number": b"1" * 10_000,
        "a device": Path("/dev/zero"),
    }


def named_truths() -> Named:
    found: Named = {**deep_json(), "many values": b"[" + b"[]," * 12_000_000 + b"1]"}
    for name, step in {"a list": [], "an object": {}, "nothing": None, "a number": 1}.items():
        data = {"base": "", "steps": [{"step": step, "layer": 0}], "kind": "linear", "data": {}}
        found[f"a step that is {name}"] = _truth("rewritten", data)
    for name, value in {"a list": [], "an object": {}}.items():
        found[f"a kind that is {name}"] = _truth(
            "rewritten", {"base": "", "steps": [], "kind": value, "data": {}}
        )
    for name, number in {"huge": 10**400, "infinite": 1e999, "a truth value": True}.items():
        origin = {"parameters": {"pairs": number}}
        found[f"a parameter that is {name}"] = _truth("witness", {}, origin=origin)
    found["a deep certificate"] = _truth("linear", {"questions": _nested(900)})
    return found


def _nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


def _truth(kind: str, data: dict[str, object], **more: object) -> bytes:
    claims = {"real": {"proven": True, "margin": "0"}, "float32": {"proven": False}}
    return json.dumps(
        {
            "format": 2,
            "label": "unsat",
            "semantics": claims,
            "certificate": {"kind": kind, "data": data},
            "sha256": {"network": "", "property": ""},
            **more,
        }
    ).encode()


def journals() -> Named:
    return {
        "junk": b"this is\nno journal\nat all\n",
        "one line of junk": b"junk",
        "bytes": bytes(range(256)) * 40,
        "other JSON": b"[1, 2]\n[3]\n",
        "a device": Path("/dev/zero"),
        "deep": b'{"schema": 1, "event": ' + b"[" * DEEP + b"]" * DEEP + b"}\n",
        "an event that is a list": b'{"schema": 1, "event": []}\n',
        "a schema that is a list": b'{"schema": [], "event": "started"}\n',
    }


def named_laws() -> Named:
    head = "input x1; var s0 := 'aaaaaaaaaaaaaaaa';\n"
    lines = "".join(f"var s{k + 1} := strConcat(s{k}, s{k});\n" for k in range(27))
    block = "output d1; { d1 = predict(x1) }\nensures s27 != 'b' || d1 == 0;"
    deep = "input x1; output d1; { d1 = predict(x1) }\nensures " + "(" * 5000 + "d1 == 0" + ")" * 5000 + ";"
    return {
        "doubled strings": (head + lines + block).encode(),
        "brackets": deep.encode(),
        "a device": Path("/dev/zero"),
    }


def named_domains() -> Named:
    return {
        "features that are a number": b"FEATURES = 1\n",
        "features of a number": b"FEATURES = [1]\n",
        "a feature with a list for a name": b"from dokimos.laws import real\nFEATURES = [real([])]\n",
        "indices that are a number": b"FEATURES = ['a']\nINDICES = 1\n",
        "indices of lists": b"FEATURES = ['a']\nINDICES = {1: []}\n",
        "models that are a list": b"MODELS = [1]\n",
        "models that are a number": b"MODELS = 1\n",
        "groups that are a number": b"FEATURES = ['a']\nGROUPS = 1\n",
        "groups of lists": b"FEATURES = ['a']\nGROUPS = [[]]\n",
        "classes that are a number": b"CLASSES = 1\n",
        "a model that is a number": b"FEATURES = ['age', 'sex']\nmodel = 1\ninputs = lambda: [[1, 0]]\n",
        "inputs that are a list": b"FEATURES = ['age', 'sex']\ninputs = [[1, 0]]\nmodel = lambda: len\n",
        "labels that are a number": b"FEATURES = ['age', 'sex']\nlabels = 1\ninputs = lambda: [[1, 0]]\n",
        "bytes": bytes(range(256)),
        "deep": b"FEATURES = " + b"[" * 5000 + b"]" * 5000,
    }


def recipes() -> Named:
    values = "[" + ", ".join(str(k / 500) for k in range(1, 501)) + "]"
    sweep = f"{{ gamma = {values}, pairs = {values}, inputs = {values}, classes = {values} }}"
    draw = '[[draw]]\nfamily = "exclusive-pairs"\n'
    return {
        "a sweep of 500^4 draws": f"{draw}sweep = {sweep}\n".encode(),
        "many sweeps": (f"{draw}sweep = {{ gamma = {values}, pairs = {values} }}\n" * 40).encode(),
        "deep": b"about = " + b"[" * DEEP + b"]" * DEEP,
        "deep tables": b"a" + b".a" * DEEP + b" = 1",
        "a long number": b"seed = " + b"1" * 10_000,
        "a large number": f"seed = 1\ntimeout_seconds = 1{'0' * 400}\n{draw}".encode(),
        "a large count": f"{draw}count = 1{'0' * 4200}\n".encode(),
        "a device": Path("/dev/zero"),
    }


def results() -> Named:
    blanks = b" " * 400_000
    return {
        "blanks in a tensor": b"sat\nX" + blanks + b"f [1]\n1\n",
        "blanks after a name": b"sat\nX f" + blanks + b"1]\n",
        "blanks in a shape": b"sat\nX f [1" + blanks + b"x\n",
        "blanks in a pair": b"sat\n((X_0" + blanks + b"1" + blanks + b"x))",
        "blanks before an answer": blanks + b"sat",
        "a long number": b"sat\nX f [" + b"1" * 10_000 + b"]\n1\n",
        "deep": b"[" * DEEP,
        "a device": Path("/dev/zero"),
    }


def archive(**arrays: bytes) -> bytes:
    """An .npz file of the contents of .npy files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as there:
        for name, content in arrays.items():
            there.writestr(f"{name}.npy", content)
    return file.getvalue()


def named_archives() -> Named:
    small = {title: content for title, content in pools().items() if isinstance(content, bytes)}
    found: Named = {title: archive(x=content, y=content) for title, content in small.items()}
    stated = bytearray(archive(x=bytes(1000), y=bytes(8)))
    size = stated.index(b"PK\x01\x02") + 24  # of the first array, in the table of contents
    stated[size : size + 4] = b"\xf0" * 4
    found["4 GB, it says"] = bytes(stated)
    found["a device"] = Path("/dev/zero")
    return found


def tables() -> Named:
    return {
        "a class of 300 digits": b"0.5,1e300\n",
        "a number beyond float32": b"1e300,1\n",
        "a class in the millions": b"0.5,2000000000\n",
        "a field without end": b'"' + b"a" * 1_000_000,
        "a NUL": b"0.5,\x001\n",
        "a device": Path("/dev/zero"),
    }


def pools() -> Named:
    def header(shape: str, dtype: str = "<f8") -> bytes:
        text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
        text += b" " * (117 - len(text)) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text

    return {
        "104 TiB": header("(14293651161088, 1)") + b"\0" * 64,
        "8 GiB": header("(1073741824, 1)") + b"\0" * 64,
        "no bytes": header("(4611686018427387904, 0)"),
        "65 axes": header(str((1,) * 30)[:-1] + ", 1" * 5 + ")") + b"\0" * 8,
        "a negative size": header("(-1, 8)") + b"\0" * 64,
        "objects": header("(1,)", "|O") + b"\0" * 8,
        "deep": header("(" * 40 + "1" + ")" * 40),
        "a device": Path("/dev/zero"),
    }
