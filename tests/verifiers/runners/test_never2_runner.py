"""A layer that NeVer2 has no abstraction for is unsupported; any other exception is not."""

from __future__ import annotations

from dokimos.verifiers.runners.never2_runner import layer_being_abstracted


class SigmoidNode:
    """Named as NeVer2 names its layers."""


class Networks:
    @staticmethod
    def __get_abstract_node_class(node: object) -> None:
        raise Exception(f"Node {type(node).__name__} is not supported")

    @classmethod
    def abstract(cls, node: object) -> None:
        cls.__get_abstract_node_class(node)


def test_the_layer_is_named() -> None:
    try:
        Networks.abstract(SigmoidNode())
    except Exception as error:
        assert layer_being_abstracted(error.__traceback__) == "Sigmoid"


def test_another_exception_names_none() -> None:
    try:
        raise ValueError("Node SigmoidNode is not supported")
    except ValueError as error:
        assert layer_being_abstracted(error.__traceback__) is None
    assert layer_being_abstracted(None) is None
