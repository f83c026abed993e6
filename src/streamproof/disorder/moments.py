"""Instants for people."""

from __future__ import annotations

from streamproof.disorder.units import TimeUnit
from streamproof.events.time import Unit, show_moment


def moment_text(tick: int, unit: TimeUnit) -> str:
    """A tick as an instant, without zeros that say nothing.

    >>> moment_text(1_500_000, "us"), moment_text(7, "ps")
    ('1970-01-01T00:00:01.5Z', '7 ps')
    """
    if unit == "ps":
        return f"{tick} ps"
    plain: Unit = unit
    text = show_moment(tick, plain)
    return text.rstrip("Z").rstrip("0") + "Z" if "." in text else text
