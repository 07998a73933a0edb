"""What the rules for statements in bodies make, and what is wrong with a statement by itself.

In: the values of a rule's parts, and the place of their text. Out: nodes of `ast`.
A method per rule or alias of the grammar's section on bodies.
"""

from decimal import Decimal
from typing import Any, Final

from policy_lang import ast, codes
from policy_lang.source import Span
from policy_lang.syntax.conditions import Conditions
from policy_lang.syntax.currencies import CURRENCIES
from policy_lang.syntax.tokens import Parts

RISKS: Final = ("read", "low", "medium", "high")
MAX_MONEY_PLACES: Final = 6
"""Fractional digits of money."""


class Statements(Conditions):
    """Bodies and their statements."""

    def body(self, parts: Parts, start: int, end: int) -> ast.Body:
        return ast.Body(tuple(parts[1]), Span(start, end))

    def body_with_last(self, parts: Parts, start: int, end: int) -> ast.Body:
        return ast.Body((*parts[1], parts[2]), Span(start, end))

    # --- rules ---

    def allow(self, parts: Parts, start: int, end: int) -> ast.Rule:
        return ast.Rule("allow", parts[1], Span(start, end), parts[2], None, parts[3], parts[4], parts[5])

    def ask(self, parts: Parts, start: int, end: int) -> ast.Rule:
        return ast.Rule("ask", parts[1], Span(start, end), False, None, parts[2], parts[3], parts[4])

    def deny(self, parts: Parts, start: int, end: int) -> ast.Rule:
        return ast.Rule("deny", parts[1], Span(start, end), False, None, parts[2], parts[3], parts[4], parts[5])

    def auto_approve(self, parts: Parts, start: int, end: int) -> ast.Rule:
        return ast.Rule("auto_approve", parts[1], Span(start, end), False, None, parts[2], parts[3], parts[4])

    def mark(self, parts: Parts, start: int, end: int) -> ast.Rule:
        return ast.Rule("mark", parts[3], Span(start, end), False, parts[1], parts[4], parts[5], parts[6])

    def only(self, parts: Parts, start: int, end: int) -> ast.Only:
        return ast.Only(parts[1], parts[2], Span(start, end))

    def only_none(self, parts: Parts, start: int, end: int) -> ast.Only:
        return ast.Only(None, parts[2], Span(start, end))

    def autonomy(self, parts: Parts, start: int, end: int) -> ast.Autonomy:
        return ast.Autonomy(parts[1], (), Span(start, end))

    def cap(self, parts: Parts, start: int, end: int) -> tuple[Any, Any, Span]:
        return parts[0], parts[1], Span(start, end)

    cap_items = Conditions.first

    def autonomy_table(self, parts: Parts, start: int, end: int) -> ast.Autonomy:
        seen: dict[str, Span] = {}
        for risk, _, span in parts[2]:
            self.once(risk, span, seen)
        missing = [risk for risk in RISKS if risk not in seen]
        if missing:
            named = ", ".join(f"`{risk}`" for risk in missing)
            message = f"the autonomy table says nothing of {named}"
            self.report(
                codes.INCOMPLETE_TABLE, message, Span(start, end), "name all of `read`, `low`, `medium`, `high`"
            )
        return ast.Autonomy(None, tuple((risk, answer) for risk, answer, _ in parts[2]), Span(start, end))

    def once(self, key: str, span: Span, seen: dict[str, Span]) -> None:
        """Report an item of a block that stands twice."""
        if key in seen:
            label = (seen[key], "first written here")
            self.report(codes.REPEATED_ITEM, f"`{key}` is written twice", span, "keep one of them", label=label)
        else:
            seen[key] = span

    # --- limits ---

    def limit_count(self, parts: Parts, start: int, end: int) -> ast.Limit:
        amount = self.whole(self.positive(parts[1]))
        return ast.Limit(amount, parts[2], None, parts[3], parts[4], parts[5], Span(start, end))

    def limit_money(self, parts: Parts, start: int, end: int) -> ast.Limit:
        return ast.Limit(self.money(parts[1], parts[2]), "money", None, parts[3], parts[4], parts[5], Span(start, end))

    def limit_time(self, parts: Parts, start: int, end: int) -> ast.Limit:
        return ast.Limit(parts[1], "time", None, parts[3], parts[4], parts[5], Span(start, end))

    def limit_sum(self, parts: Parts, start: int, end: int) -> ast.Limit:
        argument = self.of_args(parts[3])
        return ast.Limit(self.positive(parts[1]), "sum", argument, parts[4], parts[5], parts[6], Span(start, end))

    def of_args(self, operand: ast.Operand) -> ast.Operand:
        if operand.root != "args":
            message = f"`{self.source.at(operand.span)}` is not an argument"
            self.report(codes.UNEXPECTED, message, operand.span, "write `args.NAME`")
        return operand

    def positive(self, number: ast.Number) -> ast.Number:
        if number.value < 0:
            self.report(codes.BAD_AMOUNT, f"`{number.text}` is negative", number.span, "an amount is not negative")
        return number

    def whole(self, number: ast.Number) -> ast.Number:
        if isinstance(number.value, Decimal):
            self.report(codes.BAD_AMOUNT, f"`{number.text}` is not a whole number", number.span, "counts are whole")
        return number

    def money(self, number: ast.Number, currency: ast.Name) -> ast.Money:
        self.positive(number)
        span = Span(number.span.start, currency.span.end)
        amount = Decimal(number.value)
        places = len(number.text.partition(".")[2].replace("_", ""))
        if places > MAX_MONEY_PLACES:
            message = f"`{number.text}` has {places} fractional digits"
            self.report(codes.BAD_AMOUNT, message, number.span, f"money has at most {MAX_MONEY_PLACES}")
        if currency.text not in CURRENCIES:
            message = f"`{currency.text}` is no currency and no unit"
            help_ = (
                "write a unit such as `calls`, `tokens`, `time`, or a currency of ISO 4217 in lower case, such as `usd`"
            )
            self.report(codes.BAD_AMOUNT, message, currency.span, help_)
        return ast.Money(amount, currency.text, f"{number.text} {currency.text}", span)

    count = Conditions.word
    calendar_unit = Conditions.word
    pot = Conditions.word
    to = per = Conditions.second

    def window(self, parts: Parts, start: int, end: int) -> ast.Window:
        text: str = parts[0]
        if text in {"turn", "session"}:
            return ast.Window("turn" if text == "turn" else "session", 0, None, None, text, Span(start, end))
        seconds = {"minute": 60, "hour": 3600, "day": 86400}[text]
        return ast.Window("rolling", seconds, None, None, text, Span(start, end))

    def rolling_window(self, parts: Parts, start: int, end: int) -> ast.Window:
        duration: ast.Duration = parts[0]
        if duration.seconds == 0:
            self.report(codes.BAD_AMOUNT, "a window of no time", duration.span, "a window is longer than `0s`")
        return ast.Window("rolling", duration.seconds, None, None, duration.text, Span(start, end))

    def calendar_window(self, parts: Parts, start: int, end: int) -> ast.Window:
        return ast.Window("calendar", 0, parts[1], parts[3], f"calendar {parts[1]}", Span(start, end))

    def pot_of_argument(self, parts: Parts, start: int, end: int) -> ast.Operand:
        return self.of_args(parts[0])

    # --- what an execution may use ---

    def connect(self, parts: Parts, start: int, end: int) -> ast.Connect:
        return ast.Connect(tuple(parts[1]), Span(start, end))

    def connect_none(self, parts: Parts, start: int, end: int) -> ast.Connect:
        return ast.Connect((), Span(start, end))

    def skills(self, parts: Parts, start: int, end: int) -> ast.Skills:
        return ast.Skills(tuple(parts[1]), Span(start, end))

    def skills_none(self, parts: Parts, start: int, end: int) -> ast.Skills:
        return ast.Skills((), Span(start, end))

    def memory_none(self, parts: Parts, start: int, end: int) -> ast.Memory:
        return ast.Memory(None, None, Span(start, end))

    def memory_read(self, parts: Parts, start: int, end: int) -> ast.Memory:
        return ast.Memory(tuple(parts[2]), None, Span(start, end))

    def memory_write(self, parts: Parts, start: int, end: int) -> ast.Memory:
        return ast.Memory(None, tuple(parts[2]), Span(start, end))

    def memory_read_write(self, parts: Parts, start: int, end: int) -> ast.Memory:
        return ast.Memory(tuple(parts[2]), tuple(parts[4]), Span(start, end))

    def delegate(self, parts: Parts, start: int, end: int) -> ast.Delegate:
        if parts[3] and (parts[4] is None or not parts[4].value.strip()):
            help_ = 'an independent delegate may do what its delegator may not: say why with `because "…"`'
            self.report(codes.NO_REASON, "`independent` needs a `because`", Span(start, end), help_)
        return ast.Delegate(tuple(parts[2]), parts[3], parts[4], Span(start, end))

    def delegate_depth(self, parts: Parts, start: int, end: int) -> ast.DelegateDepth:
        return ast.DelegateDepth(self.whole(self.positive(parts[2])), Span(start, end))

    def delegate_none(self, parts: Parts, start: int, end: int) -> ast.DelegateNone:
        return ast.DelegateNone(Span(start, end))

    def use(self, parts: Parts, start: int, end: int) -> ast.Use:
        return ast.Use(tuple(parts[1]), Span(start, end))

    # --- approval and runtime ---

    def approval_none(self, parts: Parts, start: int, end: int) -> ast.Approval:
        return ast.Approval(True, None, None, None, None, None, Span(start, end))

    def approval_item(self, parts: Parts, start: int, end: int) -> tuple[str, Any, Span]:
        return parts[0], parts[1], Span(start, end)

    def approval_route(self, parts: Parts, start: int, end: int) -> tuple[str, Any, Span]:
        return parts[0], parts[2], Span(start, end)

    def approval_remember(self, parts: Parts, start: int, end: int) -> tuple[str, Any, Span]:
        return parts[0], (parts[1], None), Span(start, end)

    def approval_remember_for(self, parts: Parts, start: int, end: int) -> tuple[str, Any, Span]:
        if parts[1] == "never":
            self.report(codes.UNEXPECTED, "`never` lasts no time", Span(start, end), "write `remember never`")
        return parts[0], (parts[1], parts[3]), Span(start, end)

    memory_of_answers = Conditions.word
    approval_items = Conditions.first

    def approval(self, parts: Parts, start: int, end: int) -> ast.Approval:
        seen: dict[str, Span] = {}
        items: dict[str, Any] = {}
        for key, value, span in parts[2]:
            self.once(key, span, seen)
            items.setdefault(key, value)
        if not items:
            help_ = "write `approval none` if nobody is asked"
            self.report(codes.EMPTY_LIST, "`approval` says nothing", Span(start, end), help_)
        remember, remember_for = items.get("remember", (None, None))
        return ast.Approval(
            False, items.get("route"), items.get("timeout"), items.get("on_no_approver"), remember, remember_for,
            Span(start, end),
        )  # fmt: skip

    def runtime_item(self, parts: Parts, start: int, end: int) -> ast.RuntimeItem:
        return ast.RuntimeItem(parts[0], parts[1], Span(start, end))

    def runtime_count(self, parts: Parts, start: int, end: int) -> ast.RuntimeItem:
        return ast.RuntimeItem(parts[0], self.whole(self.positive(parts[1])), Span(start, end))

    def on(self, parts: Parts, start: int, end: int) -> ast.Boolean:
        return ast.Boolean(True, Span(start, end))

    def off(self, parts: Parts, start: int, end: int) -> ast.Boolean:
        return ast.Boolean(False, Span(start, end))

    runtime_number = runtime_duration = Conditions.word
    runtime_items = Conditions.first

    def runtime(self, parts: Parts, start: int, end: int) -> ast.Runtime:
        seen: dict[str, Span] = {}
        for item in parts[2]:
            self.once(item.key, item.span, seen)
        if not seen:
            self.report(codes.EMPTY_LIST, "`runtime` says nothing", Span(start, end), "name a setting, or leave it out")
        return ast.Runtime(tuple(parts[2]), Span(start, end))

    # --- history and drift ---

    def require(self, parts: Parts, start: int, end: int) -> ast.Require:
        same = tuple(self.of_args(operand) for operand in parts[5])
        return ast.Require(parts[1], parts[3], parts[4], same, parts[6], parts[7], Span(start, end))

    def on_any_drift(self, parts: Parts, start: int, end: int) -> ast.OnDrift:
        return ast.OnDrift(None, parts[2], Span(start, end))

    def on_drift(self, parts: Parts, start: int, end: int) -> ast.OnDrift:
        return ast.OnDrift(parts[2], parts[3], Span(start, end))
