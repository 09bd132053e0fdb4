"""Small questions to begin with."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from dokimos.hunting.file_graph import FileGraph, FileNode, read_graph
from dokimos.hunting.proven_draws import RANDOM
from dokimos.hunting.specimen import LabelProver, Specimen
from dokimos.networks.writing.builder import ModelBuilder
from dokimos.suites.vnnlib.model import Box, Case, Linear, Property, Signature

PROVER = LabelProver(Fraction(1, 100), is_float32=True)


def random_graph(shape: str, seed: int) -> FileGraph:
    return RANDOM[shape](np.random.default_rng(seed)).graph().folded().tidied()


def asking(graph: FileGraph, bound: Fraction, outputs: int = 1, reach: int = 1) -> Specimen:
    """Y_0 <= bound on a box around 0; the witness is 0 everywhere."""
    size = graph.input_size
    box = Box((Fraction(-reach),) * size, (Fraction(reach),) * size)
    conjunction = (Linear((), ((0, Fraction(1)),), bound),)
    signature = Signature("f", "X", (size,), "Y", (outputs,))
    return Specimen(graph, Property((signature,), (Case(box, (conjunction,)),)), (Fraction(0),) * size)


def hinge(width: int = 4) -> Specimen:
    """Y_0 = −Σ relu(x_i + 1/2) + 1/8·Σ relu(−x_i), with a counterexample at 1: a tight bound is needed."""
    eye = np.eye(width)
    last = np.hstack([-np.ones((1, width)), np.full((1, width), 0.125)])
    built = ModelBuilder([width]).affine(np.vstack([eye, -eye]), [0.5] * width + [0.0] * width)
    graph = read_graph(built.relu().affine(last, [0.0]).build(1)).tidied()
    return replace(asking(graph, Fraction(-13, 10) * width), witness=(Fraction(1),) * width)


def dilated() -> Specimen:
    """A convolution with dilations, whose last entry is at least 1 at 0."""
    weight = np.ones((1, 1, 2, 2), dtype=np.float32)
    nodes = (
        FileNode("Conv", ("X", "w0", "w1"), "t0", {"dilations": [2, 2]}),
        FileNode("Flatten", ("t0",), "t1", {}),
        FileNode("Gemm", ("t1", "w2"), "Y", {}),
    )
    constants = {
        "w0": weight,
        "w1": np.array([1.0], dtype=np.float32),
        "w2": np.full((1, 1), -1.0, dtype=np.float32),
    }
    return asking(FileGraph("X", (1, 1, 3, 3), "Y", nodes, constants, 13), Fraction(-1, 2))
