"""stub"""
from dataclasses import dataclass
from typing import Any
@dataclass(frozen=True)
class Parts:
    nodes: Any
    constants: Any
    shapes: Any
def rewrite(node, shapes, constants):
    return None
