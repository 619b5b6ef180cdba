"""Sums of money, exact to the cent."""

from decimal import ROUND_HALF_EVEN, Decimal


def cents(text):
    return Decimal(text).quantize(Decimal("0.01"), ROUND_HALF_EVEN)
