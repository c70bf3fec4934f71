"""Small changes to a syntax tree, one at a time, each of which a test should notice."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass

# Each operator becomes the one that is most easily confused with it.
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.Gt: ast.GtE,
    ast.Eq: ast.NotEq,
    ast.Is: ast.IsNot,
    ast.In: ast.NotIn,
    ast.And: ast.Or,
    ast.Add: ast.Sub,
    ast.Mult: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.Break: ast.Continue,
}
SWAPPED |= {new: old for old, new in SWAPPED.items()} | {ast.Div: ast.Mult, ast.Mod: ast.FloorDiv}
EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
# Their negation is the swapped operator.
NEGATED_BY_SWAP = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
LOGGERS = re.compile(r"_?(log|logger|LOG|LOGGER|logging|warnings)")
# What no test should notice: types, how objects print, checks of what cannot happen, messages.
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list"}
SKIPPED_KEYWORDS = {"repr", "strict", "stacklevel"}
SKIPPED_FUNCTIONS = {"__repr__", "__str__"}


@dataclass(frozen=True)
class Mutant:
    """One change: ``index`` counts the changes of a source."""

    index: int
    line: int
    """Of the changed code."""
    statement: int
    """The line where the statement begins."""
    in_function: bool
    """Whether the line runs in calls. Otherwise it runs once, when the module is imported."""
    before: str
    after: str


@dataclass(frozen=True)
class _Place:
    owner: ast.AST
    field: str
    index: int | None
    statement: ast.stmt
    in_function: bool

    @property
    def node(self) -> ast.AST:
        value = getattr(self.owner, self.field)
        found: ast.AST = value if self.index is None else value[self.index]
        return found

    def put(self, new: ast.AST) -> None:
        if self.index is None:
            setattr(self.owner, self.field, new)
        else:
            getattr(self.owner, self.field)[self.index] = new


def mutants(source: str) -> list[Mutant]:
    """Return all changes of a source, in its order."""
    lines = source.splitlines()
    found: list[Mutant] = []
    for place, new in _changes(ast.parse(source)):
        before, after = _shown(lines, place.node, new)
        line: int = getattr(place.node, "lineno", place.statement.lineno)
        found.append(Mutant(len(found), line, place.statement.lineno, place.in_function, before, after))
    return found


def mutate(tree: ast.Module, index: int) -> ast.Module:
    """Return the tree with one of its changes."""
    for count, (place, new) in enumerate(_changes(tree)):
        if count == index:
            place.put(ast.copy_location(new, place.node))
            return ast.fix_missing_locations(tree)
    raise IndexError(f"the tree has no change {index}")


def _changes(tree: ast.Module) -> Iterator[tuple[_Place, ast.AST]]:
    for place in _places(tree, None, in_function=False):
        for new in _changed(place):
            yield place, new


def _places(node: ast.AST, statement: ast.stmt | None, *, in_function: bool) -> Iterator[_Place]:
    """Yield where a node may be replaced. Default arguments belong to the module, a function's body to its calls."""
    for field, value in ast.iter_fields(node):
        if field in SKIPPED_FIELDS:
            continue
        inside = in_function or (isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and field == "body")
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _skipped(child):
                continue
            around = child if isinstance(child, ast.stmt) else statement
            if around is not None and not isinstance(child, ast.arguments | ast.match_case | ast.excepthandler):
                yield _Place(node, field, index, around, inside)
            yield from _places(child, around, in_function=inside)


def _skipped(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.Assert() | ast.JoinedStr():
            return True
        case ast.FunctionDef(name=name):
            return name in SKIPPED_FUNCTIONS
        case ast.keyword(arg=name):
            return name in SKIPPED_KEYWORDS
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name) | ast.Attribute(attr=name)))):
            return bool(LOGGERS.fullmatch(name))
    return False


def _changed(place: _Place) -> Iterator[ast.AST]:
    """Yield what may stand in a node's place."""
    node = place.node
    condition = isinstance(place.owner, ast.If | ast.IfExp) and place.field == "test"
    if condition and isinstance(node, ast.expr) and not _negated_anyway(node):
        yield ast.UnaryOp(ast.Not(), node)
    match node:
        case ast.Compare(ops=ops):
            for index, each in enumerate(ops):
                yield _with(node, ops=[*ops[:index], SWAPPED[type(each)](), *ops[index + 1 :]])
        case ast.BinOp(op=op, left=left, right=right):
            if type(op) in SWAPPED and not (_is_text(left) or _is_text(right)):
                yield _with(node, op=SWAPPED[type(op)]())
        case ast.AugAssign(op=op, target=target):
            if type(op) in SWAPPED:
                yield _with(node, op=SWAPPED[type(op)]())
            if isinstance(target, ast.Attribute | ast.Subscript):
                yield ast.Pass()
        case ast.BoolOp(op=op):
            yield _with(node, op=SWAPPED[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Delete():
            yield ast.Pass()
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.Call(func=ast.Name(id=name) as function) if name in EXTREMES:
            yield _with(node, func=_with(function, id=EXTREMES[name]))
        case ast.Call(func=ast.Attribute(attr=name) as function) if name in EXTREMES:
            yield _with(node, func=_with(function, attr=EXTREMES[name]))
        case ast.Break() | ast.Continue():
            yield SWAPPED[type(node)]()


def _negated_anyway(node: ast.AST) -> bool:
    match node:
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Compare(ops=[one]):
            return isinstance(one, NEGATED_BY_SWAP)
    return False


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _shown(lines: list[str], node: ast.AST, new: ast.AST) -> tuple[str, str]:
    """Return the code before and after: the whole line where one line has all of it."""
    line, end = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    if not line or line != end:
        return " ".join(ast.unparse(node).split()), " ".join(ast.unparse(new).split())
    code = lines[line - 1].encode()
    begin, behind = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", 0)
    return code.decode().strip(), (code[:begin] + ast.unparse(new).encode() + code[behind:]).decode().strip()
