"""What the tokens of a model cost: a host's own table, and the public list of `genai-prices`.

In: a model's name, tokens in and out. Out: exact amounts by currency, or None where there is no price. Both are
`loop.access.Prices`.
"""

from collections.abc import Mapping
from decimal import Context, Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from zcpolicy.extras import missing
from zcpolicy.pots import reported

if TYPE_CHECKING:
    from zcpolicy.loop.access import Prices

Price = Decimal | float | tuple[Decimal | float, Decimal | float]

PER: Final = 6
"""Prices are per million tokens: ten to this power."""
_EXACT: Final = Context(prec=5_000)


class PricesError(ValueError):
    """A table of prices that is none. The message names the model."""


class PriceTable:
    """The host's own prices; it comes first, and what it does not name is asked of `otherwise`.

    `per_million`: by model, an amount for tokens in and one for tokens out, or one for both; `{"local": 0}` makes that
    model free. Amounts are `Decimal`, int, or a float that is meant as it is written. Raises PricesError.
    """

    def __init__(
        self,
        per_million: Mapping[str, Price],
        currency: str = "usd",
        *,
        otherwise: "Prices | None" = None,
    ) -> None:
        self.currency = currency.lower()
        self._otherwise = otherwise
        self._prices = {model: _pair(model, price) for model, price in per_million.items()}

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Mapping[str, Decimal] | None:
        """By currency, exact; None where neither this table nor the one behind it has a price."""
        price = self._prices.get(model)
        if price is None:
            return None if self._otherwise is None else self._otherwise.cost(model, input_tokens, output_tokens)
        spent = _EXACT.add(_EXACT.multiply(price[0], input_tokens), _EXACT.multiply(price[1], output_tokens))
        return {self.currency: _EXACT.scaleb(spent, -PER)}


class GenaiPrices:
    """The public prices that `genai-prices` ships (extra `prices`): offline, as of its release; nothing is fetched.

    `provider`: who sells the model (`openai`, `azure`), where several do. Raises ImportError without the extra.
    """

    def __init__(self, *, provider: str | None = None) -> None:
        if find_spec("genai_prices") is None:
            raise missing("the public list of prices", "prices")
        self.provider = provider

    def cost(self, model: str, input_tokens: int, output_tokens: int) -> Mapping[str, Decimal] | None:
        """In `usd`, exact; None where the list does not know the model, or not what its tokens in or out cost.

        `model`: its name; `openai:gpt-4o` names the seller as well.
        """
        from genai_prices import Usage, calc_price

        seller, colon, name = model.partition(":")
        usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
        try:
            found = calc_price(usage, model, provider_id=self.provider)
        except (LookupError, ValueError):
            if not colon or self.provider is not None:
                return None
            try:
                found = calc_price(usage, name, provider_id=seller)
            except (LookupError, ValueError):
                return None
        listed = vars(found.model_price)
        if (input_tokens and listed.get("input_mtok") is None) or (output_tokens and listed.get("output_mtok") is None):
            return None
        return {"usd": found.total_price}


def _pair(model: str, price: Price) -> tuple[Decimal, Decimal]:
    amounts = [reported(part) for part in (price if isinstance(price, tuple) else (price, price))]
    if len(amounts) != 2 or amounts[0] is None or amounts[1] is None:
        raise PricesError(f"the price of `{model}` is an amount per million tokens, or one in and one out")
    return Decimal(amounts[0]), Decimal(amounts[1])
