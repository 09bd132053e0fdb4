"""The block of a law that does more than predict: its Python code, and how the model answers it.

The cases run side by side: each stops where it asks the model, and those that ask together are answered
together. What could tell the order in which they run (`print`, a global stream of random numbers) runs case
by case.
"""

from __future__ import annotations

import ast
import dis
import symtable
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cached_property, partial
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dokimos.core.errors import DokimosError
from dokimos.laws.domain.functions import SCORES, DomainFunction, explain
from dokimos.laws.engine.calls import Failures, block_rng, call_single, single_value
from dokimos.laws.engine.case_frame import Frame, Records, column, stack
from dokimos.laws.engine.evaluation import Evaluator
from dokimos.laws.engine.law_plan import LawPlan
from dokimos.laws.engine.values import scoring
from dokimos.laws.language import syntax as laws
from dokimos.laws.language.law_layout import runnable
from dokimos.laws.models.tested_model import Model

#: The name of the largest seed in laws written for the published tool.
MAX_INT = 2**31 - 1


#: What holds several values: laws compare numbers, texts and truth values.
_SEVERAL = (list, tuple, set, frozenset, dict)


def _wrong_outputs(outputs: list[str], names: dict[str, Any]) -> str:
    """What is wrong with the values that a block gave to outputs; empty if nothing is."""
    missing = [name for name in outputs if name not in names]
    if missing:
        return f"the block ended without a value for {', '.join(missing)}"
    for name in outputs:
        value = names[name]
        if isinstance(value, _SEVERAL) or (isinstance(value, np.ndarray) and value.ndim > 0):
            kind = "record" if isinstance(value, np.ndarray) else type(value).__name__
            return f"the output {name} is a {kind}, not a number, a text or a truth value"
    return ""


# A block as a generator, which yields what it asks the model


#: How many arguments each question to the model has.
_QUESTIONS = {"predict": 1} | dict.fromkeys(SCORES, 2)
#: What shows in which order cases run, or looks at the code that runs: a block with one of these names, or
#: with a `with`, which may change settings of all cases until it ends, is run case by case.
_IN_ORDER = frozenset(
    {"print", "input", "open", "exec", "eval", "compile", "globals", "locals", "vars", "dir", "setattr"}
    | {"random", "seed", "set_state", "setstate", "seterr", "time", "sys", "os", "warnings", "logging"}
    | {"next", "StopIteration", "__import__", "STORE_GLOBAL"}
)
#: The modules that a block may import and still run side by side.
_HARMLESS = frozenset({"math", "numpy", "statistics", "itertools", "functools", "operator", "collections"})
#: The functions that go through a generator expression at once; `any` and `all` may stop early.
_AT_ONCE = frozenset({"sum", "max", "min", "list", "tuple", "set", "sorted"})
_EMPTY = {"list": [], "any": False, "all": True}
#: What may be evaluated later, or never.
_LATER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.DictComp, ast.SetComp)


class _Asking(ast.NodeTransformer):
    """Turns questions to the model into `yield`s; `loops` are functions for the comprehensions with some.

    Questions in functions that the block defines, and in what may be evaluated later, stay as they are.
    """

    def __init__(self, own: set[str], spaces: set[str]) -> None:
        self.loops: list[ast.stmt] = []
        self.found = 0
        self._own, self._spaces = own, spaces - own

    def _asks(self, node: ast.AST) -> bool:
        """Whether the node is a question to the model."""
        match node:
            case ast.Call(func=ast.Name(id=name)):
                known = name in _QUESTIONS and name not in self._own
            case ast.Call(func=ast.Attribute(value=ast.Name(id=space), attr=name)):
                known = name in _QUESTIONS and space in self._spaces
            case _:
                return False
        plain = not node.keywords and not any(isinstance(each, ast.Starred) for each in node.args)
        return known and plain and len(node.args) == _QUESTIONS[name]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A question, or a call that goes through all of a generator expression with questions."""
        match node:
            case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as every], keywords=[]):
                if name in ("any", "all") and name not in self._own:
                    return self._loop(every, name) or node
                if name in _AT_ONCE - self._own:
                    node.args = [self._loop(every, "list") or every]
                    return node
        self.generic_visit(node)
        if not self._asks(node):
            return node
        self.found += 1
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr  # type: ignore[attr-defined]
        question = ast.Tuple([ast.Constant(name), *node.args], ast.Load())
        return ast.copy_location(ast.Yield(question), node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        """A list of what is asked in a loop."""
        return self._loop(node, "list") or node

    def visit(self, node: ast.AST) -> Any:
        """The node with its questions as `yield`s."""
        return node if isinstance(node, (*_LATER, ast.GeneratorExp)) else super().visit(node)

    def _loop(self, node: ast.ListComp | ast.GeneratorExp, kind: str) -> ast.expr | None:
        """The comprehension as a call of a function that may ask; None if it asks nothing, or in vain."""
        inside = list(ast.walk(node))
        if not any(map(self._asks, inside)) or any(isinstance(each, ast.NamedExpr) for each in inside):
            return None
        first = self.visit(node.generators[0].iter)
        outer, self.loops = self.loops, []
        name = f"__loop_{node.lineno}_{node.col_offset}"
        node.generators[0].iter = ast.Name(f"{name}_over", ast.Load())
        function = _parsed(
            f"def {name}({name}_over):\n {name}_all = {_EMPTY[kind]}\n return {name}_all\n yield"
        )
        value = self.visit(node.elt)
        if kind == "list":
            body = _parsed(f"{name}_all.append()")
            body.value.args = [value]
        else:
            body = _parsed(f"if True: return {kind == 'any'}")
            body.test = value if kind == "any" else ast.UnaryOp(ast.Not(), value)
        for each in reversed(node.generators):
            for condition in reversed(each.ifs):
                body = ast.If(self.visit(condition), [body], [])
            body = ast.copy_location(ast.For(each.target, self.visit(each.iter), [body], []), each.iter)
        function.body[:1] = [*self.loops, function.body[0], body]
        self.loops = [*outer, function]
        call = ast.Call(ast.Name(name, ast.Load()), [first], [])
        return ast.copy_location(ast.YieldFrom(ast.copy_location(call, node)), node)


def _parsed(text: str) -> Any:
    return ast.parse(text).body[0]


def _asking_code(plan: LawPlan) -> CodeType | None:
    """The block as the code of a generator function on the same names; None if it runs case by case."""
    text, law, functions = runnable(plan.law.block.text), plan.law, plan.domain.functions
    tree = ast.parse(text)
    every = list(ast.walk(tree))
    modules = {each.name for node in every if isinstance(node, ast.Import) for each in node.names}
    modules |= {str(node.module) for node in every if isinstance(node, ast.ImportFrom)}
    assert plan.code is not None
    names = _names_in(plan.code, {})
    if names & _IN_ORDER or modules - _HARMLESS or any(isinstance(each, ast.With) for each in every):
        return None
    if not all(_is_free(functions[name]) for name in names & set(functions)):
        return None
    symbols = symtable.symtable(text, law.name, "exec").get_symbols()
    assigned = {each.get_name() for each in symbols if each.is_assigned() or each.is_imported()}
    values = {each.name for each in (*law.inputs, *law.variables)}
    asking = _Asking(assigned | values | set(functions), {each.name for each in law.imports})
    body = [asking.visit(each) for each in tree.body]
    if not asking.found:
        return None
    block = _parsed("def block(): pass")
    block.body = [*([ast.Global(sorted(assigned))] if assigned else []), *asking.loops, *body]
    module = ast.fix_missing_locations(ast.Module([block], []))
    try:
        code = compile(ast.increment_lineno(module, law.block.at.line - 1), law.name, "exec")
    except SyntaxError:  # what may not stand in a function
        return None
    return next(each for each in code.co_consts if isinstance(each, CodeType))


def _is_free(function: DomainFunction) -> bool:
    """Whether a domain's function shows nothing of the order in which cases call it, as far as one sees."""
    own = {"random"} if function.takes_rng else set()  # a generator of the case has a method of that name
    versions = [each for each in (function.single, function.batch) if isinstance(each, FunctionType)]
    return not any((_names_in(each.__code__, each.__globals__) - own) & _IN_ORDER for each in versions)


def _names_in(code: CodeType, known: dict[str, Any], seen: tuple[CodeType, ...] = ()) -> set[str]:
    """The names in code and in the functions of its module that it calls, and whether it sets globals."""
    names = {*code.co_names, *(each.opname for each in dis.get_instructions(code))}
    called = [each for each in map(known.get, code.co_names) if isinstance(each, FunctionType)]
    for each in (*code.co_consts, *(each.__code__ for each in called if each.__globals__ is known)):
        if isinstance(each, CodeType) and each not in seen:
            names |= _names_in(each, known, (*seen, code))
    return names


class BlockCode:
    """Runs the block of a law against a model."""

    def __init__(self, plan: LawPlan, model: Model, labels: Callable[[], NDArray[Any]]) -> None:
        self._plan, self._model, self._labels = plan, model, labels
        self._score = scoring(model, plan.domain.classes)
        self._warned: dict[Any, Any] = {}  # so that a warning of the block is shown once, not in every case
        self._asking = None if plan.code is None else _asking_code(plan)
        self._seconds: list[float] = []  # what each call of the model took, until `fixed` is known
        #: What the calls for the first cases side by side would have taken for next to none of them.
        self.fixed = 0.0

    def outputs(self, frame: Frame, failures: Failures) -> dict[str, list[Any]]:
        """The value of each output in the cases that do not fail; the others go to `failures`.

        Raises GivenUp if `failures` does.
        """
        outputs: dict[str, list[Any]] = {each.name: [] for each in self._plan.law.outputs}
        together = self._asking is not None and frame.size > 1
        for row, (names, problem) in enumerate((self._together if together else self._in_turn)(frame)):
            if isinstance(problem, DokimosError):
                raise problem
            told = None if problem is None else explain(problem, "the block")
            wrong = told or _wrong_outputs(list(outputs), names)
            if wrong:
                failures.add(int(frame.ids[row]), wrong)
                failures.expect_another(frame.ids[: row + 1])
                continue
            for name, values in outputs.items():
                values.append(names[name])
        return outputs

    def _in_turn(self, frame: Frame) -> Iterator[tuple[dict[str, Any], Exception | None]]:
        """The names that the block leaves in each case, or what it raised, one case after the other."""
        assert self._plan.code is not None
        for row in range(frame.size):
            names, problem = self._namespace(frame, row), None
            try:
                exec(self._plan.code, names)
            except Exception as raised:
                problem = raised
            yield names, problem

    def _together(self, frame: Frame) -> Iterator[tuple[dict[str, Any], Exception | None]]:
        """The same, of cases that run side by side."""
        assert self._asking is not None
        names = [self._namespace(frame, row) for row in range(frame.size)]
        blocks: list[Generator[Any, Any, None]] = [FunctionType(self._asking, each)() for each in names]
        raised: list[Exception | None] = [None] * frame.size
        answers: dict[int, Any] = dict.fromkeys(range(frame.size))
        while answers:
            asked: dict[Any, list[tuple[int, Any, Any]]] = {}
            for row, answer in answers.items():
                block = blocks[row]
                try:
                    go_on = block.throw if isinstance(answer, Exception) else block.send
                    kind, record, *wanted = go_on(answer)
                except StopIteration:
                    continue
                except Exception as problem:
                    stop = problem.__cause__ if isinstance(problem, RuntimeError) else None
                    raised[row] = stop if isinstance(stop, StopIteration) else problem
                    continue
                is_row = isinstance(record, np.ndarray) and record.ndim and record.dtype.kind in "biuf"
                records = record[None] if is_row else stack([record])
                like = (kind, records.shape, records.dtype, *map(type, wanted))
                asked.setdefault(like, []).append((row, records, wanted))
            answers = {}
            for (kind, *_), questions in asked.items():
                # the second call shows what one for a single case takes
                alone = int(not self.fixed and len(self._seconds) == 1)
                self._answer(kind, questions[:alone], answers)
                self._answer(kind, questions[alone:], answers)
        if not self.fixed and len(self._seconds) > 1:
            self.fixed = len(self._seconds) * min(self._seconds)
        return zip(names, raised, strict=True)

    def _answer(
        self, kind: str, questions: Sequence[tuple[int, Any, Any]], answers: dict[int, Any]
    ) -> None:
        """Ask the model for all cases; if it raises, for fewer, so that a failure is one case's answer."""
        if not questions:
            return
        start = time.perf_counter()
        try:
            records = np.concatenate([each for _, each, _ in questions])
            answers |= zip(
                [row for row, _, _ in questions],
                self._answers(kind, records, [each for _, _, wanted in questions for each in wanted]),
                strict=True,
            )
            if not self.fixed:
                self._seconds.append(time.perf_counter() - start)
        except Exception as problem:
            half = len(questions) // 2
            if half == 0:
                answers[questions[0][0]] = problem
                return
            self._answer(kind, questions[:half], answers)
            self._answer(kind, questions[half:], answers)

    def _answers(self, kind: str, records: NDArray[Any], wanted: list[Any]) -> list[Any]:
        """What the model answers to a question about each record, as plain values."""
        if kind != "predict":
            return [float(each) for each in self._score(kind, records, column(wanted))]
        decisions = self._model.predict(records)
        if decisions.dtype.kind in "biuf":
            return decisions.tolist()  # type: ignore[no-any-return]
        return [column([each]).item() for each in decisions]

    def _namespace(self, frame: Frame, row: int) -> dict[str, Any]:
        """The names in the block of one case: the law's, the domain's functions, builtins, `predict`."""
        rng = block_rng(int(frame.seeds[row]))
        functions: dict[str, Any] = {
            "predict": lambda record: self._answers("predict", stack([record]), [])[0],
            "randInt": lambda low, high: int(rng.integers(low, high, endpoint=True)),
            "randReal": lambda low, high: float(rng.uniform(low, high)),
            "getFeat": self._get_feature,
            "setFeat": self._set_feature,
            "strConcat": lambda left, right: left + right,
            "MAX_INT": MAX_INT,
            **{kind: partial(self._class_score, kind) for kind in SCORES},
        }
        for name, own in self._plan.domain.functions.items():
            functions[name] = partial(_called, own, rng, self._model)
        origin = next((value.origin for value in frame.values.values() if isinstance(value, Records)), None)
        if origin is not None:
            functions["label"] = lambda record: single_value(self._labels()[origin[row : row + 1]], 0)
        spaces = {each.name: SimpleNamespace(**functions) for each in self._plan.law.imports}
        values = {name: single_value(value, row) for name, value in frame.values.items()}
        return {**functions, **spaces, **values, "__warningregistry__": self._warned}

    def _class_score(self, kind: str, record: Any, wanted: Any) -> float:
        return float(self._answers(kind, stack([record]), [wanted])[0])

    def _get_feature(self, record: Any, feature: str | int) -> Any:
        one = Records(np.asarray(record)[None])
        return single_value(self._alone_in_block.feature(one, feature, self._in_block), 0)

    def _set_feature(self, record: Any, feature: str | int, value: Any) -> Any:
        one = Records(np.asarray(record)[None])
        return self._alone_in_block.changed(one, feature, column([value]), self._in_block).data[0]

    @cached_property
    def _alone_in_block(self) -> Evaluator:
        nothing = np.zeros(1, dtype=np.int64)
        return Evaluator(self._plan, Frame(nothing, nothing, {}), _Raising(), self._labels)

    @cached_property
    def _in_block(self) -> laws.Expression:
        """A syntax node at the position of the block, for messages."""
        return laws.Literal(None, at=self._plan.law.block.at)


class _Raising(Failures):
    """Turns errors inside the block into exceptions of the block."""

    def add(self, case: int, reason: str) -> None:
        raise ValueError(reason)


def _called(function: DomainFunction, rng: np.random.Generator, model: Model, *arguments: Any) -> Any:
    return call_single(function, arguments, rng, model.predict)
