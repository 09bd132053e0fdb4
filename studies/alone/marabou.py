"""What Marabou says without our adapter, and whether its own assignment is one:

    $DOKIMOS_HOME/verifiers/marabou-*/bin/python studies/alone/marabou.py NETWORK PROPERTY
    $DOKIMOS_HOME/verifiers/marabou-*/bin/python studies/alone/marabou.py SIZE...

Run by Marabou's own interpreter, through the interface that its README shows. After `sat`, the values that
it gives to the variables are held against the equations and ReLUs of its own form of the network.

Given sizes s instead of files, it is asked whether relu(s·x + 2s)/s, which is x + 2 on [−0.5, 0.5], reaches
2.3 there: `sat` is right.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

REACHES = "(assert (>= X_0 -0.5))\n(assert (<= X_0 0.5))\n(assert (>= Y_0 2.3))\n"


def ask(network_file: str, property_file: str) -> None:
    """Print the answer, and how far the assignment is from being one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from maraboupy import Marabou
    network = Marabou.read_onnx(network_file)
    options = Marabou.createOptions(verbosity=0, timeoutInSeconds=30, numBlasThreads=1)
    answer, values, _ = network.solve(propertyFilename=property_file, options=options, verbose=False)
    print(answer)
    if answer != "sat":
        return
    gaps = [abs(sum(c * values[v] for c, v in e.addendList) - e.scalar) for e in network.equList]
    print(f"of {len(gaps)} equations the worst is missed by {max(gaps, default=0):.2g}")
    relus = [(values[before], values[after]) for before, after in network.reluList]
    for before, after in relus:
        if abs(after - max(before, 0.0)) > 1e-6:
            print(f"one of {len(relus)} ReLUs is given {before:.3g} and gives {after:.3g}")
    outputs = [values[int(v)] for array in network.outputVars for v in array.flatten()]
    print(f"outputs: {', '.join(f'{y:.6g}' for y in outputs)}")


def ask_of_size(size: float, folder: Path) -> None:
    """Print the answer about units of that size."""
    from onnx import TensorProto, helper, save

    def constant(name: str, value: float, *shape: int) -> TensorProto:
        return helper.make_tensor(name, TensorProto.FLOAT, shape, [value])

    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "v", "z"], ["y"]),
    ]
    constants = [
        constant("w", size, 1, 1),
        constant("b", 2 * size, 1),
        constant("v", 1 / size, 1, 1),
        constant("z", 0.0, 1),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 1]) for name in "xy"]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    save(model, str(folder / "small.onnx"))
    (folder / "small.vnnlib").write_text(
        f"(declare-const X_0 Real)\n(declare-const Y_0 Real)\n{REACHES}", encoding="ascii"
    )
    print(f"units of size {size:g}:")
    ask(str(folder / "small.onnx"), str(folder / "small.vnnlib"))


if __name__ == "__main__":
    if Path(sys.argv[1]).exists():
        ask(*sys.argv[1:])
    else:
        with tempfile.TemporaryDirectory() as folder_name:
            for spelled in sys.argv[1:]:
                ask_of_size(float(spelled), Path(folder_name))
