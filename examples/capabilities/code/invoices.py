"""Invoices, with types that JSON has no word for."""
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum


class Currency(Enum):
    EUR = "EUR"
    CHF = "CHF"


@dataclass
class Line:
    """One line of an invoice.

    Attributes:
        text: what was sold
        price: of one
        count: how many
    """

    text: str
    price: Decimal
    count: int = 1


@dataclass
class Invoice:
    total: Decimal
    tax: Decimal
    currency: Currency
    due: date


TAX = Decimal("0.081")


def total(lines: list[Line], issued: date, currency: Currency = Currency.EUR, *, days: int = 30) -> Invoice:
    """Adds up the lines of an invoice.

    Args:
        lines: what was sold
        issued: the day of the invoice
        currency: in which it is paid
        days: until it is due
    """
    net = sum((line.price * line.count for line in lines), Decimal(0))
    tax = round(net * TAX, 2)
    return Invoice(net + tax, tax, currency, issued + timedelta(days=days))
