"""What model use costs, by the price list that `genai-prices` carries; never fetched."""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import Any

from agentguard.call import Usage


def cost(usage: Usage, model: str | None, provider: str | None = None) -> Decimal | None:
    """Return the US dollars of one model call; None when the model or its token counts are not known.

    Cached input tokens are priced as such, and only once: they are part of `usage.input_tokens`.
    """
    if model is None or (usage.input_tokens is None and usage.output_tokens is None):
        return None
    prices = _library()
    try:
        counted = prices.Usage(
            input_tokens=usage.input_tokens or 0,
            output_tokens=usage.output_tokens or 0,
            cache_read_tokens=usage.cached_tokens,
        )
        price: Decimal = prices.calc_price(counted, model_ref=model, provider_id=provider).total_price
    except (LookupError, ValueError):  # a model that the list does not know; counts that cannot be
        return None
    return price


@functools.cache
def _library() -> Any:
    import genai_prices  # 30 ms and a large table: only who charges usage pays for it

    return genai_prices
