"""Reading and judging the arguments of one call (SPEC 6).

In: the arguments as a host has them (a dictionary, or JSON text), and the tool's schema.
Out: a fresh copy with the defaults written in, which is what runs; or `Malformed` with the reason.
"""

from __future__ import annotations

from zcpolicy.exact import MAX_INTEGER, exact, is_list, is_map, is_object, number_of, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from decimal import Decimal
    from typing import Any, Final, TypeGuard

    from zcpolicy.shapes import Schema

MAX_CALL_CHARACTERS: Final = 4_194_304
"""Characters of all strings of a call together, names included; and of its JSON text."""
MAX_CALL_DEPTH: Final = 100
"""Lists and objects of a call that may stand in each other."""
MAX_CALL_VALUES: Final = 100_000
"""Values of a call: each scalar, list and object counts one."""
MAX_SLIPS: Final = 3
"""Letters that a misspelt argument may have more or less than the one that is suggested."""


class Malformed(ValueError):
    """Arguments that are not what the schema wants. The message names the place, and quotes no value."""


def read_json(text: str | bytes) -> object:
    """JSON text as values; integers exact, other numbers `Decimal`. Raises Malformed.

    Duplicate names, NaN, infinite and unbounded numbers, and text that is too long are malformed.
    """
    from json import loads

    if len(text) > MAX_CALL_CHARACTERS:
        raise Malformed(f"the arguments have more than {MAX_CALL_CHARACTERS} characters")
    try:
        decoded = text.decode() if isinstance(text, bytes) else text
        return loads(
            decoded, object_pairs_hook=_pairs, parse_float=_decimal, parse_int=_integer, parse_constant=_constant
        )
    except Malformed:
        raise
    except RecursionError:
        raise Malformed("the arguments nest too deep") from None
    except ValueError:
        raise Malformed("the arguments are not well-formed JSON") from None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Malformed("an object has the same name twice")
    return found


def _decimal(text: str) -> int | Decimal:
    from decimal import Decimal

    try:
        return Decimal(number_of(text))
    except ValueError:
        raise Malformed("a number is out of bounds") from None


def _integer(text: str) -> int:
    try:
        return int(number_of(text))
    except ValueError:
        raise Malformed("a number is out of bounds") from None


def _constant(text: str) -> None:
    raise Malformed("a number is not finite")


def judge(schema: Schema, arguments: object, supplies_defaults: bool = True) -> dict[str, Any]:
    """The arguments as they run: a fresh copy, with defaults where the host writes them. Raises Malformed."""
    if isinstance(arguments, (str, bytes)):
        arguments = read_json(arguments)
    if not is_object(arguments):
        raise Malformed("the arguments are not an object")
    judging = _Judging(supplies_defaults)
    judged: dict[str, Any] = judging.members(schema, arguments, "the call", 1)
    return judged


def judge_value(schema: Schema, value: object) -> object:
    """One value held against a schema, for facts of the context. Raises Malformed."""
    return _Judging(False).value(schema, value, "the value", 1)


class _Judging:
    """What one call has used of the bounds so far."""

    __slots__ = ("characters", "supplies_defaults", "values")

    def __init__(self, supplies_defaults: bool) -> None:
        self.supplies_defaults = supplies_defaults
        self.values = MAX_CALL_VALUES
        self.characters = MAX_CALL_CHARACTERS

    def value(self, schema: Schema, value: object, place: str, depth: int) -> object:
        """A fresh copy of a value that fits."""
        self.values -= 1
        if self.values < 0:
            raise Malformed(f"the call has more than {MAX_CALL_VALUES} values")
        if depth > MAX_CALL_DEPTH:
            raise Malformed("the arguments nest too deep")
        kind = schema["kind"]
        if value is None:
            if schema.get("nullable") or kind in ("any", "null"):
                return None
            raise Malformed(f"{place} is null")
        copy = getattr(self, _FITS[kind])(schema, value, place, depth)
        if "enum" in schema and not any(same(copy, plain(choice)) for choice in schema["enum"]):
            raise Malformed(f"{place} is none of the values that the tool takes")
        return copy

    def text(self, schema: Schema, value: object, place: str, depth: int) -> str:
        if type(value) is not str:
            raise Malformed(f"{place} is not a string")
        self.characters -= len(value)
        if self.characters < 0:
            raise Malformed(f"the call has more than {MAX_CALL_CHARACTERS} characters")
        if not sound(value):
            raise Malformed(f"{place} holds half of a surrogate pair")
        return value

    def number(self, schema: Schema, value: object, place: str, depth: int) -> object:
        kind = type(value)
        if kind is int:
            if -MAX_INTEGER < value < MAX_INTEGER:  # type: ignore[operator]  # an int
                return value
            raise Malformed(f"{place} is out of bounds")
        if kind is float:
            try:
                exact(value)  # type: ignore[arg-type]  # a float
            except ValueError:
                raise Malformed(f"{place} is not finite") from None
            return value
        if kind.__name__ == "Decimal":  # what `read_json` makes; the module is not loaded for anything else
            from decimal import Decimal

            if kind is Decimal:
                return _bounded(value, place)
        raise Malformed(f"{place} is not a number")

    def integer(self, schema: Schema, value: object, place: str, depth: int) -> int:
        found: Any = self.number(schema, value, place, depth)
        if found != int(found):
            raise Malformed(f"{place} is not a whole number")
        return int(found)

    def boolean(self, schema: Schema, value: object, place: str, depth: int) -> bool:
        if value is True or value is False:
            return value
        raise Malformed(f"{place} is neither true nor false")

    def null(self, schema: Schema, value: object, place: str, depth: int) -> None:
        raise Malformed(f"{place} is not null")

    def items(self, schema: Schema, value: object, place: str, depth: int) -> list[object]:
        if not _is_row(value):
            raise Malformed(f"{place} is not a list")
        item = schema.get("item", _ANY)
        return [self.value(item, one, f"{place}[]" if depth < 4 else place, depth + 1) for one in value]

    def members(self, schema: Schema, value: object, place: str, depth: int) -> dict[str, object]:
        if not is_object(value):
            raise Malformed(f"{place} is not an object")
        fields = schema.get("fields", {})
        copy: dict[str, object] = {}
        extra = schema.get("extra", "deny" if depth == 1 else "allow")
        for name, one in value.items():
            known = fields.get(self.text(schema, name, "a name", depth))
            if known is None:
                known = self._extra(extra, name, place, fields)
            copy[name] = self.value(known, one, f"`{spelt(name)}`", depth + 1)
        self._missing(schema, fields, copy, depth)
        return copy

    @staticmethod
    def _extra(extra: object, name: str, place: str, fields: dict[str, Schema]) -> Schema:
        if extra == "allow":
            return _ANY
        if is_map(extra):
            return extra  # type: ignore[return-value]  # the schema of further members
        raise Malformed(f"{place} has an argument `{spelt(name)}` that the tool does not name{_meant(name, fields)}")

    def _missing(self, schema: Schema, fields: dict[str, Schema], copy: dict[str, object], depth: int) -> None:
        if self.supplies_defaults:
            for name, field in fields.items():
                if "default" in field and name not in copy:
                    copy[name] = self.value(
                        field, plain(field["default"]), f"the default of `{spelt(name)}`", depth + 1
                    )
        for name in schema.get("required", ()):
            written_later = not self.supplies_defaults and name in fields and "default" in fields[name]
            if name not in copy and not written_later:
                raise Malformed(f"`{spelt(name)}` is missing")

    def anything(self, schema: Schema, value: object, place: str, depth: int) -> object:
        if type(value) is str:
            return self.text(schema, value, place, depth)
        if value is True or value is False:
            return value
        if is_object(value):
            return self.members(_OPEN, value, place, max(depth, 2))
        if _is_row(value):
            return self.items(_ANY, value, place, depth)
        return self.number(schema, value, place, depth)


def _meant(name: str, fields: dict[str, Schema]) -> str:
    """The argument that was perhaps meant, in brackets."""
    from zcpolicy.misspelt import misspelt

    alike = [field for field in fields if abs(len(field) - len(name)) <= MAX_SLIPS]
    found = next(near for _, near in misspelt([name], alike))
    return f" (did you mean `{spelt(found)}`?)" if found is not None else ""


_ANY: Final[Schema] = {"kind": "any", "unreviewed": True}
_OPEN: Final[Schema] = {"kind": "object", "extra": "allow"}
_FITS: Final = {
    **dict.fromkeys(("string", "path", "url", "shell", "command"), "text"),
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "list": "items",
    "object": "members",
    "any": "anything",
}


def _is_row(value: object) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """A host may have tuples where JSON has lists."""
    return type(value) is list or type(value) is tuple


def _bounded(number: Any, place: str) -> object:
    if not number.is_finite() or abs(number.adjusted()) > 1_000 or len(number.as_tuple().digits) > 1_000:
        raise Malformed(f"{place} is out of bounds")
    return number


def sound(text: str) -> bool:
    """Whether text has no lone surrogate: whether it can be sent at all."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def spelt(name: str) -> str:
    """A name from a call, fit for a message: short, printable."""
    return "".join(letter if letter.isprintable() and letter != "`" else "\ufffd" for letter in name[:60])


def same(left: object, right: object) -> bool:
    """Equality of JSON values: no coercion, `1` is `1.0`, `true` is not `1`. Raises ValueError if one is not finite."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if type(left) is float:
        left = exact(left)
    if type(right) is float:
        right = exact(right)
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(same, left, right))
    if is_object(left) and is_object(right):
        return left.keys() == right.keys() and all(same(one, right[name]) for name, one in left.items())
    return left == right


class _Misfit:
    __slots__ = ()


MISFIT: Final = _Misfit()
"""What a quick fit answers where it does not know: the call has then to be judged whole."""
QUICK_VALUES: Final = 1_000
"""Values of one argument that is judged quickly; larger ones are judged the plain way."""
QUICK_CHARACTERS: Final = 65_536
"""Characters of one argument that is judged quickly."""


def fits_quickly(schema: Schema) -> Any:
    """A function that copies a fitting value of moderate size, and gives MISFIT for every other."""

    def fit(value: object) -> object:
        judging = _Judging(True)
        judging.values, judging.characters = QUICK_VALUES, QUICK_CHARACTERS
        try:
            return judging.value(schema, value, "", 2)
        except Malformed:
            return MISFIT

    return fit
