"""The values of a knob's domain."""

from twin.search.knob import Choices, Domain, Knob, Powers, Span, Value


def values_of(domain: Domain) -> tuple[Value, ...]:
    """Return all values of a domain, in its order."""
    if isinstance(domain, Choices):
        return domain.values
    if isinstance(domain, Powers):
        powers = range(domain.low.bit_length() - 1, domain.high.bit_length())
        return tuple(2**power for power in powers)
    steps = round((domain.high - domain.low) / domain.step)
    return tuple(as_number(domain, domain.low + step * domain.step) for step in range(steps + 1))


def as_number(domain: Span, value: float) -> float | int:
    """Return a value of a span: whole where its steps are, else free of the noise of sums."""
    whole = float(domain.low).is_integer() and float(domain.step).is_integer()
    return round(value) if whole else round(value, 9)


def clean(knob: Knob, value: Value) -> Value:
    """Return a suggested value as a scenario wants it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if isinstance(knob.domain, Powers):
        return int(value)
    return as_number(knob.domain, value) if isinstance(knob.domain, Span) else value
