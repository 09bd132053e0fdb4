"""What NeVer2 says through its own readers, without our adapter:

    $DOKIMOS_HOME/verifiers/never2-*/bin/python scripts/never2_alone.py NETWORK PROPERTY

Run by NeVer2's own interpreter. Its reader of VNN-LIB takes disjunctions of conjunctions, and refuses a
single constraint.
"""

from __future__ import annotations

import logging
import sys
import warnings
from types import ModuleType


def main(network_file: str, property_file: str) -> None:
    """Print `sat` with NeVer2's witness, or `unsat`."""
    warnings.simplefilter("ignore")
    sys.modules["torchvision"] = ModuleType("torchvision")  # imported for training only
    from pynever.strategies.conversion.converters.onnx import ONNXConverter
    from pynever.strategies.conversion.representation import load_network_path
    from pynever.strategies.verification.algorithms import SSBPVerification
    from pynever.strategies.verification.parameters import SSBPVerificationParameters
    from pynever.strategies.verification.properties import VnnLibProperty

    logging.disable(logging.CRITICAL)
    network = ONNXConverter().to_neural_network(load_network_path(network_file))
    strategy = SSBPVerification(SSBPVerificationParameters(timeout=60))
    is_safe, witness = strategy.verify(network, VnnLibProperty(property_file))
    print("unsat" if is_safe else "no answer within 60 s" if witness is None else f"sat {witness.tolist()}")


if __name__ == "__main__":
    main(*sys.argv[1:])
