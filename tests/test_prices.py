"""What model use costs by the list that is installed; nothing is fetched, and what is unknown stays unknown."""

from __future__ import annotations

import socket
from decimal import Decimal

import pytest

from agentguard import Usage
from agentguard.prices import cost

THOUSAND = Usage(1_000, 100)


def test_tokens_are_priced_by_the_model():
    # gpt-4o: 2.50 dollars a million tokens read, 10 written
    assert cost(THOUSAND, "gpt-4o") == Decimal("0.0035")


def test_cached_tokens_cost_less_and_count_once():
    # 600 at 2.50, 400 cached at 1.25, 100 written at 10
    assert cost(Usage(1_000, 100, 400), "gpt-4o") == Decimal("0.0030")


@pytest.mark.parametrize("provider", ["openai", "azure.ai.openai"])
def test_a_provider_may_be_named_as_the_convention_names_it(provider: str):
    assert cost(THOUSAND, "gpt-4o", provider) == Decimal("0.0035")


@pytest.mark.parametrize(
    ("usage", "model", "provider"),
    [
        (THOUSAND, None, None),
        (THOUSAND, "", None),
        (THOUSAND, "a-model-nobody-sells", None),
        (THOUSAND, "gpt-4o", "a-provider-nobody-knows"),
        (Usage(), "gpt-4o", None),
        (Usage(10, 1, 40), "gpt-4o", None),
        (Usage(-1, 1), "gpt-4o", None),
    ],
)
def test_what_is_not_known_costs_an_unknown_amount(usage: Usage, model: str | None, provider: str | None):
    assert cost(usage, model, provider) is None


def test_one_known_count_is_enough():
    assert cost(Usage(1_000, None), "gpt-4o") == Decimal("0.0025")
    assert cost(Usage(None, 100), "gpt-4o") == Decimal("0.0010")


def test_no_price_is_fetched(monkeypatch: pytest.MonkeyPatch):
    def refuse(*address: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert cost(THOUSAND, "gpt-4o-mini") is not None
