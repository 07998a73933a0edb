"""What in the text of a tool keeps state past a call, or makes an identity of its own.

In: the text of a module, and the names of the classes whose objects live as long as the tool. Out: places with what is wrong.

Told from the text alone, and therefore a lower bound: what is hidden behind a call of another module is not seen (`two_clients` looks at
what really crosses). What is meant is written `# zcpolicy: state WHY` on its line.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from zcpolicy.state.trees import (
    GLOBALS,
    Function,
    Scoped,
    attributes_set,
    bound_by,
    changes_of,
    class_state,
    counts_on,
    defines,
    functions_of,
    imported_by,
    is_classmethod,
    is_constant,
    is_handle,
    locals_of,
    mutable_defaults,
    names_of,
    own_name_of,
    parameters_of,
    parts_of,
    path_of,
    set_on_self,
    value_of,
    words_of,
)

_IN_ORDER: Final = frozenset("__init__ __post_init__ __aenter__ __aexit__ register shut_down tools".split())
"""Methods of a tool that run in no call."""
_CACHES: Final = frozenset(("cache", "lru_cache"))
_IDENTITY: Final = re.compile(
    r"(?i)^_*(client|caller|user|tenant|session|principal|account|owner|visitor|identity)(_?(id|key|name))?$"
)
_TRANSPORT: Final = re.compile(
    r"(?i)^_*(sender|from_user|headers?|x[-_].+|authorization|user[-_]?agent|user[-_]?name|remote[-_]?(addr|address|ip|user)"
    r"|(client|peer|source|ip)[-_]?(ip|addr|address|host|port|name)|peername|ip|ip_?address|phone|e?mail|chat[-_]?id)$"
)
_OF_THE_DAEMON: Final = frozenset(("Identity", "Who", "caller_for", "caller_of", "whose"))
_ALLOWED: Final = re.compile(r"#\s*zcpolicy:\s*state\s+\S")

HANDLE: Final = "keep it in a handle that the factory is given, and use `handle.scoped(context.caller)`"
_DERIVED: Final = "take `given.derived(…)`, which is worked out again when a source changes, or a scoped handle"


class Place(NamedTuple):
    """`what` is wrong at a line, and what to write `instead`."""

    line: int
    what: str
    instead: str


def places(text: str, living: Iterable[str] = ()) -> tuple[Place, ...]:
    """All places of a module's text, in order. `living`: classes whose objects live as long as the tool. Raises SyntaxError."""
    tree = ast.parse(text)
    module = _Module(tree, living)
    lines = text.splitlines()
    found = {place for function in module.functions for place in _Reading(module, function).places()}
    return tuple(sorted(place for place in found if not _ALLOWED.search(lines[place.line - 1])))


class _Module:
    """What a module binds, and its functions."""

    def __init__(self, tree: ast.Module, living: Iterable[str]) -> None:
        self.imports = {name for node in parts_of(tree) for name in imported_by(node)}
        self.classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self.names = {name for node in parts_of(tree) for name in bound_by(node)} | {GLOBALS}
        self.functions = tuple(functions_of(tree, (), None))
        self.living = self._living(
            tree, {*living, *(name for name, one in self.classes.items() if defines(one, "tools"))}
        )
        self.requests = self._requests()

    def _living(self, tree: ast.Module, known: set[str]) -> set[str]:
        """Classes of which the module, a factory or a class that lives makes objects; handles are meant to hold state."""
        factories = [
            one.node for one in self.functions if one.owner is None and not isinstance(one.node, ast.AsyncFunctionDef)
        ]
        makers = [
            tree,
            *(one for one in factories if any(isinstance(part, ast.AsyncFunctionDef) for part in ast.walk(one))),
        ]
        found = known | {name for maker in makers for name in self._made_in(parts_of(maker))}
        while True:
            beginnings = [
                one.node
                for one in self.functions
                if one.owner and one.owner.name in found and one.node.name in _IN_ORDER
            ]
            bases = {
                base.id
                for name in found & set(self.classes)
                for base in self.classes[name].bases
                if isinstance(base, ast.Name)
            }
            more = ({name for node in beginnings for name in self._made_in(parts_of(node))} | bases) & set(
                self.classes
            ) - found
            if not more:
                return {name for name in found if name in self.classes and not is_handle(self.classes[name])}
            found |= more

    def _made_in(self, nodes: Iterable[ast.AST]) -> Iterator[str]:
        calls = (node.func for node in nodes if isinstance(node, ast.Call))
        return (one.id for one in calls if isinstance(one, ast.Name) and one.id in self.classes)

    def _requests(self) -> set[Function]:
        """Functions inside a function that run in calls: coroutines, and what they name."""
        inner = [one for one in self.functions if one.above]
        found: set[Function] = {one.node for one in inner if isinstance(one.node, ast.AsyncFunctionDef)}
        while True:
            named = {node.id for one in found for node in ast.walk(one) if isinstance(node, ast.Name)}
            more = {one.node for one in inner if one.node.name in named} - found
            if not more:
                return found
            found |= more


class _Reading:
    """One function, read."""

    def __init__(self, module: _Module, scoped: Scoped) -> None:
        self._module = module
        self._function, self._above, self._owner = scoped
        self._nodes = list(parts_of(self._function))
        self._globals = {name for node in self._nodes if isinstance(node, ast.Global) for name in node.names}
        self._nonlocals = {name for node in self._nodes if isinstance(node, ast.Nonlocal) for name in node.names}
        self._locals = locals_of(self._function)
        self._self = own_name_of(self._function) if self._owner else ""
        self._given = self._derived_from(set(parameters_of(self._function)) - {self._self})
        self._other_names = self._of_what_lives()

    def _derived_from(self, known: set[str]) -> set[str]:
        """Names whose values come of these."""
        bindings = [(bound_by(node), names_of(value)) for node in self._nodes if (value := value_of(node)) is not None]
        while True:
            more = {name for bound, used in bindings if used & known for name in bound} - known
            if not more:
                return known
            known = known | more

    def _of_what_lives(self) -> dict[str, tuple[str, ...]]:
        """Names of its own for something of the tool's or the module's, as `log = self.log`; with what they stand for."""
        bindings = [(bound_by(node), value_of(node)) for node in self._nodes]
        often = Counter(name for bound, _ in bindings for name in bound)
        paths = [(bound[0], path_of(value)) for bound, value in bindings if len(bound) == 1 and value is not None]
        lives = self._module.names - self._module.imports - self._locals
        return {
            name: path
            for name, path in paths
            if path and often[name] == 1 and (path[0] in lives or (len(path) > 1 and path[0] == self._self))
        }

    def places(self) -> Iterator[Place]:
        """What is wrong in it."""
        yield from self._cached()
        for node in self._nodes:
            for target, keys in changes_of(node):
                yield from self._changed(node, target, keys)
            yield from self._identity(node)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del) and node.id in self._globals:
                yield Place(node.lineno, f"`global {node.id}` is set by a function: every client has the same", HANDLE)

    def _changed(self, node: ast.AST, target: ast.expr, keys: tuple[ast.expr, ...]) -> Iterator[Place]:
        path = path_of(target)
        if not path:
            return
        line = target.lineno
        if (
            isinstance(target, ast.Name)
            and isinstance(target.ctx, ast.Store | ast.Del)
            and path[0] not in self._nonlocals
        ):
            return  # it is bound, not changed
        path = (*self._other_names.get(path[0], path[:1]), *path[1:])
        root, spelled = path[0], ".".join(path)
        is_call = isinstance(node, ast.Call)
        counts = counts_on(node)
        if self._self and (path[:1] == (self._self,) or path[:2] == ("type", self._self)):
            yield from self._changed_object(path, line, keys, counts=counts)
        elif root in self._locals:
            if root in mutable_defaults(self._function):
                yield Place(
                    line,
                    f"the default of `{root}` is changed: it is the same for all calls",
                    "write `None`, and make a new one inside",
                )
        elif any(root in locals_of(one) for one in self._above):
            if self._function in self._module.requests and self._lives_on(root):
                yield from self._kept(f"`{spelled}` of the factory", line, keys, counts=counts)
        elif root in self._module.names and not (
            is_call and len(path) == 1 and root in self._module.imports and not is_constant(root)
        ):
            kind = "class" if root in self._module.classes else "module"
            yield Place(line, f"`{spelled}` of the {kind} is changed by a function: every client has the same", HANDLE)

    def _lives_on(self, root: str) -> bool:
        """Whether a name of a function around this one outlives a call: that function is no part of a call itself."""
        owner = next(one for one in reversed(self._above) if root in locals_of(one))
        return not isinstance(owner, ast.AsyncFunctionDef) and owner not in self._module.requests

    def _changed_object(
        self, path: tuple[str, ...], line: int, keys: tuple[ast.expr, ...], *, counts: bool
    ) -> Iterator[Place]:
        owner = self._owner
        assert owner is not None
        of_class = path[0] == "type" or "__class__" in path or is_classmethod(self._function)
        names = [one for one in path[1:] if one not in ("__class__", self._self)]
        name = names[0] if names else ""
        if name and (of_class or (name in class_state(owner) and name not in set_on_self(owner))):
            yield Place(line, f"`{name}` of class `{owner.name}` is changed: all its objects have the same", HANDLE)
        elif name and owner.name in self._module.living and self._function.name not in _IN_ORDER:
            yield from self._kept(f"`{'.'.join(path)}` of the tool", line, keys, counts=counts)

    def _kept(self, what: str, line: int, keys: tuple[ast.expr, ...], *, counts: bool) -> Iterator[Place]:
        """What a call leaves in something that outlives it."""
        if any(names_of(key) & self._given for key in keys):
            yield Place(line, f"{what} is filled with what a call was given: every client's is in it", HANDLE)
        elif counts:
            yield Place(line, f"{what} goes on from the last call: every client's are counted in it", HANDLE)

    def _cached(self) -> Iterator[Place]:
        for decorator in self._function.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            path = path_of(called)
            named = set(parameters_of(self._function))
            of_request = bool(named & {"arguments", "context", "caller"}) or any(map(_is_of_somebody, named))
            if (
                path
                and path[-1] in _CACHES
                and (of_request or self._self or isinstance(self._function, ast.AsyncFunctionDef))
            ):
                what = f"`{path[-1]}` keeps what `{self._function.name}` gave to one call for all others"
                yield Place(decorator.lineno, what, _DERIVED)

    def _identity(self, node: ast.AST) -> Iterator[Place]:
        if isinstance(node, ast.Call) and (path := path_of(node.func)) and path[-1] in _OF_THE_DAEMON:
            yield Place(
                node.lineno, f"`{path[-1]}` is the daemon's: a tool makes no identities", "take `context.caller`"
            )
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.keyword) and isinstance(value, ast.expr):
            words = [node.arg or ""] if isinstance(node, ast.keyword) else [*bound_by(node), *attributes_set(node)]
            made = next((word for word in words if _IDENTITY.match(word)), "")
            source = next((word for word in words_of(value) if _TRANSPORT.match(word)), "")
            if made and source:
                what = f"`{made}` is made of `{source}`: text of a transport is no identity"
                yield Place(value.lineno, what, "take `context.caller`, and `shown(…)` for what people are to see")


def _is_of_somebody(name: str) -> bool:
    return bool(_IDENTITY.match(name) or _TRANSPORT.match(name))
