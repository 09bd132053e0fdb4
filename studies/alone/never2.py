"""What NeVer2 says through its own readers, without our adapter:

    $DOKIMOS_HOME/verifiers/never2-*/bin/python studies/alone/never2.py [--mended] NETWORK PROPERTY

Run by NeVer2's own interpreter. Its reader of VNN-LIB takes disjunctions of conjunctions, and refuses a
single constraint: that is put into a disjunction of one first.

--mended replaces one line of NeVer2 while this runs. Where a neuron is split, NeVer2 narrows the box by the
neuron's linear bound, input by input; for an input with coefficient 0 it returns what means "this branch
cannot be" instead of what means "nothing to narrow", and drops the branch.
"""

from __future__ import annotations

import logging
import re
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any


def mend() -> None:
    """Let an input with coefficient 0 say nothing about the branch."""
    from pynever.strategies.verification.ssbp.refinement import BoundsRefinement

    asked = BoundsRefinement.refine_input_dimension

    def mended(input_bounds: Any, coef: Any, shift: Any, i: int) -> Any:
        return 0 if coef[i] == 0 else asked(input_bounds, coef, shift, i)

    BoundsRefinement.refine_input_dimension = staticmethod(mended)


def main(network_file: str, property_file: str, *, mended: bool) -> None:
    """Print `sat` with NeVer2's witness, `unsat`, or what it died of."""
    warnings.simplefilter("ignore")
    sys.modules["torchvision"] = ModuleType("torchvision")  # imported for training only
    from pynever.strategies.conversion.converters.onnx import ONNXConverter
    from pynever.strategies.conversion.representation import load_network_path
    from pynever.strategies.verification.algorithms import SSBPVerification
    from pynever.strategies.verification.parameters import SSBPVerificationParameters
    from pynever.strategies.verification.properties import VnnLibProperty

    logging.disable(logging.CRITICAL)
    if mended:
        mend()
    network = ONNXConverter().to_neural_network(load_network_path(network_file))
    with tempfile.NamedTemporaryFile("w", suffix=".vnnlib") as question:
        single = r"\(assert (\([<>]= Y_\d+ [^()]+\))\)"
        question.write(re.sub(single, r"(assert (or (and \1)))", Path(property_file).read_text()))
        question.flush()
        asked = VnnLibProperty(question.name)
    strategy = SSBPVerification(SSBPVerificationParameters(timeout=60))
    try:
        is_safe, witness = strategy.verify(network, asked)
    except AttributeError as error:
        print(f"crash: {error}")
        return
    print("unsat" if is_safe else "no answer within 60 s" if witness is None else f"sat {witness.tolist()}")


if __name__ == "__main__":
    main(*sys.argv[-2:], mended="--mended" in sys.argv[1:-2])
