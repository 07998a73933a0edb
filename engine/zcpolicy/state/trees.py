"""What stands in the tree of a Python text: who binds what, what is changed in place, what belongs to whom.

In: nodes of `ast`. Out: names, paths (`a.b[k].c` is a, b, c), parts of trees.
"""

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef

_CONTAINERS: Final = frozenset(
    "dict list set bytearray defaultdict deque Counter OrderedDict ChainMap WeakKeyDictionary WeakValueDictionary WeakSet".split()
)
_MUTATORS: Final = frozenset(
    "add append appendleft clear discard extend extendleft insert pop popitem popleft remove setdefault update "
    "__setitem__ __delitem__ __setattr__".split()
)
_FILLERS: Final = frozenset("heappush heappushpop heapreplace insort insort_left insort_right setitem delitem".split())
"""Functions that change what they are given first."""
GLOBALS: Final = "globals()"


class Scoped(NamedTuple):
    """A function, what it stands in (outermost first), and the class whose method it is."""

    node: Function
    above: tuple[Function, ...]
    owner: ast.ClassDef | None


def parts_of(node: ast.AST) -> Iterator[ast.AST]:
    """What stands in a function, a class or a module itself, and not in a function or class inside it."""
    left: list[ast.AST] = [*node.body] if isinstance(node, Function | ast.Module | ast.ClassDef) else [node]
    while left:
        part = left.pop()
        yield part
        if not isinstance(part, Function | ast.ClassDef):
            left.extend(ast.iter_child_nodes(part))


def functions_of(node: ast.AST, above: tuple[Function, ...], owner: ast.ClassDef | None) -> Iterator[Scoped]:
    for part in ast.iter_child_nodes(node):
        if isinstance(part, Function):
            yield Scoped(part, above, owner)
            yield from functions_of(part, (*above, part), None)
        else:
            yield from functions_of(part, above, part if isinstance(part, ast.ClassDef) else owner)


def changes_of(node: ast.AST) -> Iterator[tuple[ast.expr, tuple[ast.expr, ...]]]:
    """What a node changes in place, and the keys and values that it puts there."""
    targets: list[ast.expr] = []
    values: tuple[ast.expr, ...] = ()
    match node:
        case ast.Assign():
            targets, values = node.targets, (node.value,)
        case ast.AugAssign() | ast.For() | ast.AsyncFor():
            targets, values = [node.target], (node.value if isinstance(node, ast.AugAssign) else node.iter,)
        case ast.AnnAssign(value=ast.expr() as value):
            targets, values = [node.target], (value,)
        case ast.withitem(optional_vars=ast.expr() as target):
            targets, values = [target], (node.context_expr,)
        case ast.Delete():
            targets = node.targets
        case ast.Call():
            yield from _changed_by(node)
        case _:
            pass
    for leaf in (leaf for target in targets for leaf in leaves_of(target)):
        yield (leaf.value, (leaf.slice, *values)) if isinstance(leaf, ast.Subscript) else (leaf, values)


def counts_on(node: ast.AST) -> bool:
    """Whether a statement makes a new value of the old one, as `self.count += 1` does, and `self.count = self.count + 1`."""
    if not isinstance(node, ast.Assign):
        return isinstance(node, ast.AugAssign)
    targets = {ast.unparse(leaf) for one in node.targets for leaf in leaves_of(one)}
    old = (one for one in ast.walk(node.value) if isinstance(one, ast.Name | ast.Attribute | ast.Subscript))
    return any(ast.unparse(one) in targets for one in old)


def _changed_by(call: ast.Call) -> Iterator[tuple[ast.expr, tuple[ast.expr, ...]]]:
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=kind), attr=name), args=[holder, *given]) if (
            kind in _CONTAINERS and name in _MUTATORS
        ):
            yield holder, tuple(given)
        case ast.Call(func=ast.Attribute(value=holder, attr=name), args=given) if name in _MUTATORS:
            yield holder, tuple(given)
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[holder, name, *given]):
            attribute = str(name.value) if isinstance(name, ast.Constant) else "…"
            yield ast.copy_location(ast.Attribute(holder, attribute, ast.Store()), call), tuple(given)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[holder, *given]) if name in _FILLERS:
            yield holder, tuple(given)
        case _:
            pass


def leaves_of(target: ast.expr) -> Iterator[ast.expr]:
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            yield from (leaf for part in parts for leaf in leaves_of(part))
        case ast.Starred(value=part):
            yield from leaves_of(part)
        case _:
            yield target


def path_of(node: ast.expr) -> tuple[str, ...]:
    """`a.b[k].c` and `a.b.get(k).c` as a, b, c; `type(self).x` as type, self, x; nothing for what begins otherwise."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=holder, attr=name):
            above = path_of(holder)
            return (*above, name) if above else ()
        case ast.Subscript(value=holder):
            return path_of(holder)
        case ast.Call(func=ast.Name(id="type"), args=[ast.Name(id=name)]):
            return ("type", name)
        case ast.Call(func=ast.Attribute(value=holder, attr="get" | "setdefault")):
            return path_of(holder)
        case ast.Call(func=ast.Name(id="vars"), args=[ast.Name(id=name)]):
            return (name, "__dict__")
        case ast.Call(func=ast.Name(id="globals"), args=[]):
            return (GLOBALS,)
        case _:
            return ()


def bound_by(node: ast.AST) -> list[str]:
    """The names that a statement binds."""
    match node:
        case ast.Assign(targets=targets):
            return [leaf.id for one in targets for leaf in leaves_of(one) if isinstance(leaf, ast.Name)]
        case ast.AnnAssign() | ast.AugAssign() | ast.For() | ast.AsyncFor() | ast.NamedExpr() | ast.comprehension():
            return [leaf.id for leaf in leaves_of(node.target) if isinstance(leaf, ast.Name)]
        case ast.withitem(optional_vars=ast.expr() as target):
            return [leaf.id for leaf in leaves_of(target) if isinstance(leaf, ast.Name)]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.ExceptHandler(name=str() as name):
            return [name]
        case _:
            return imported_by(node)


def value_of(node: ast.AST) -> ast.expr | None:
    """What a statement binds its names to."""
    match node:
        case (
            ast.Assign(value=value)
            | ast.AnnAssign(value=ast.expr() as value)
            | ast.AugAssign(value=value)
            | ast.NamedExpr(value=value)
        ):
            return value
        case (
            ast.For(iter=value)
            | ast.AsyncFor(iter=value)
            | ast.comprehension(iter=value)
            | ast.withitem(context_expr=value)
        ):
            return value
        case _:
            return None


def imported_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    return []


def parameters_of(function: Function) -> list[str]:
    given = function.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    return [one.arg for one in every if one is not None]


def locals_of(function: Function) -> set[str]:
    """The names that are a function's own."""
    nodes = list(parts_of(function))
    foreign = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    return {*parameters_of(function), *(name for node in nodes for name in bound_by(node))} - foreign


def names_of(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def words_of(node: ast.AST) -> Iterator[str]:
    """Names, attributes and texts in an expression."""
    for one in ast.walk(node):
        match one:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.Constant(value=str() as word):
                yield word
            case _:
                pass


def attributes_set(node: ast.AST) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else []
    return (leaf.attr for one in targets for leaf in leaves_of(one) if isinstance(leaf, ast.Attribute))


def mutable_defaults(function: Function) -> set[str]:
    given = function.args
    last = [*given.posonlyargs, *given.args][-len(given.defaults) :] if given.defaults else []
    pairs = (*zip(last, given.defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True))
    return {one.arg for one, default in pairs if default is not None and is_container(default)}


def is_container(node: ast.expr) -> bool:
    called = path_of(node.func) if isinstance(node, ast.Call) else ()
    literal = isinstance(node, ast.Dict | ast.List | ast.Set | ast.DictComp | ast.ListComp | ast.SetComp)
    return literal or bool(called and called[-1] in _CONTAINERS)


def class_state(owner: ast.ClassDef) -> set[str]:
    """Names of a class that hold what can be changed."""
    set_here = (node for node in parts_of(owner) if isinstance(node, ast.Assign | ast.AnnAssign))
    return {name for node in set_here if node.value is not None and is_container(node.value) for name in bound_by(node)}


def set_on_self(owner: ast.ClassDef) -> set[str]:
    """Attributes that each object of a class gets for itself."""
    methods = [one for one in owner.body if isinstance(one, Function)]
    paths = (
        (path, own_name_of(method))
        for method in methods
        for node in parts_of(method)
        for target in (
            [*node.targets]
            if isinstance(node, ast.Assign)
            else [node.target]
            if isinstance(node, ast.AnnAssign)
            else []
        )
        for path in [path_of(target) if isinstance(target, ast.Attribute) else ()]
    )
    return {path[1] for path, first in paths if len(path) == 2 and path[0] == first}


def own_name_of(function: Function) -> str:
    """The name of a method's own object, or class."""
    if any(path_of(one) == ("staticmethod",) for one in function.decorator_list):
        return ""
    return next(iter(parameters_of(function)), "")


def is_classmethod(function: Function) -> bool:
    return any(path_of(one) == ("classmethod",) for one in function.decorator_list)


def is_handle(owner: ast.ClassDef) -> bool:
    return any(
        path[-1:] == ("Handle",) or (path[-1:] and path[-1].endswith("Handle")) for path in map(path_of, owner.bases)
    )


def is_constant(name: str) -> bool:
    return name.isupper()


def defines(owner: ast.ClassDef, name: str) -> bool:
    return any(isinstance(one, Function) and one.name == name for one in owner.body)
