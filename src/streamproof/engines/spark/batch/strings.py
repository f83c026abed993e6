"""Functions of text as Spark columns."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.failing import failure
from streamproof.engines.spark.batch.literals import bound, let
from streamproof.engines.spark.batch.relation import Value, long
from streamproof.events.schema import STRING, Type
from streamproof.plan.limits import LONGEST_TEXT, too_long_text
from streamproof.thresholds import TEXTS_MEASURED

if TYPE_CHECKING:
    from pyspark.sql import Column

_LONGEST: Final = 2**31 - 1
_ESCAPE: Final = "\\"


@cache
def letter_pairs(*, small: bool) -> tuple[str, str]:
    """All characters that have one small (or capital) letter, and those letters, each as one string.

    >>> capitals = dict(zip(*letter_pairs(small=False)))
    >>> capitals["é"], "ß" in capitals  # the capital of ß is two letters
    ('É', False)
    """
    pairs = []
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        other = letter.lower() if small else letter.upper()
        if other != letter and len(other) == 1:
            pairs.append((letter, other))
    return "".join(a for a, _ in pairs), "".join(b for _, b in pairs)


def _letters(args: Sequence[Value], ascii_only: Callable[[Column], Column], *, small: bool) -> Column:
    """ASCII by Spark; the rest letter by letter, where Spark knows languages and context."""
    source, target = letter_pairs(small=small)

    def body(a: Column) -> Column:
        plain = f.octet_length(a) == f.char_length(a)
        return f.when(plain, ascii_only(a)).otherwise(f.translate(a, source, target))

    return let(args[0], body)


def lowered(args: Sequence[Value], result: Type) -> Column:
    return _letters(args, f.lower, small=True)


def uppered(args: Sequence[Value], result: Type) -> Column:
    return _letters(args, f.upper, small=False)


def joined(args: Sequence[Value], result: Type) -> Column:
    """Texts in a row, if they are no longer together than a text may be."""
    text = f.concat(*(arg.column for arg in args))
    if len(args) <= TEXTS_MEASURED.now and all(arg.atom for arg in args):
        return _limited(reduce(lambda a, b: a + b, (_size(arg.column) for arg in args)), text)
    return bound(text, lambda made: _limited(_size(made), made))


def replaced(args: Sequence[Value], result: Type) -> Column:
    """What is taken out counts how often it is there."""

    def body(text: Column, old: Column, new: Column) -> Column:
        taken = _size(text) - _size(f.replace(text, old, f.lit("")))
        count = f.when(_size(old) > 0, f.call_function("div", taken, _size(old)))
        return _limited(_size(text) + count * (_size(new) - _size(old)), f.replace(text, old, new))

    text, old, new = args
    return let(text, lambda a: let(old, lambda b: let(new, lambda c: body(a, b, c))))


def _size(text: Column) -> Column:
    return f.octet_length(text).cast("bigint")


def _limited(size: Column, text: Column) -> Column:
    told = too_long_text("{}")
    before, after = told.what.split("{}")
    what = f.concat(f.lit(before), size.cast("string"), f.lit(after))
    failed = failure(what, name="limit_exceeded", fix=str(told.fix), kind=STRING)
    return f.when(size > LONGEST_TEXT, failed).otherwise(text)


def substring(args: Sequence[Value], result: Type) -> Column:
    """Characters at positions from start to before start + length; there are none before position 1."""
    text, start = args[0].column, args[1]

    def first(s: Column) -> Column:
        return f.greatest(f.least(s, long(_LONGEST)), long(1)).cast("int")

    def cut(s: Column, n: Column) -> Column:
        end = s.cast("decimal(20,0)") + n.cast("decimal(20,0)")
        kept = f.greatest(end - f.greatest(s, long(1)).cast("decimal(20,0)"), f.lit(0).cast("decimal(20,0)"))
        length = f.least(kept, f.lit(_LONGEST).cast("decimal(20,0)")).cast("int")
        return f.when(s.isNotNull() & n.isNotNull(), f.substring(text, first(s), length))

    if args[0].type != STRING:  # null, of no type in particular
        return f.lit(None).cast("string")
    if len(args) == 2:
        return let(start, lambda s: f.when(s.isNotNull(), f.substring(text, first(s), f.lit(_LONGEST))))
    return let(start, lambda s: let(args[2], lambda n: cut(s, n)))


def like(args: Sequence[Value], result: Type) -> Column:
    text, pattern = args
    if isinstance(pattern.literal, str):
        return f.like(text.column, f.lit(plain_pattern(pattern.literal)))
    return f.like(text.column, let(pattern, _plain_column))


def plain_pattern(pattern: str) -> str:
    r"""A pattern in which \ stands only before %, _ and \, as Spark demands; elsewhere it escapes what needs none.

    >>> print(plain_pattern(r"50\%\a"), plain_pattern("a" + chr(92)))
    50\%a a\\
    """
    made, rest = "", pattern
    while rest:
        if rest[0] != _ESCAPE:
            made, rest = made + rest[0], rest[1:]
        elif len(rest) == 1:
            made, rest = made + _ESCAPE * 2, ""
        else:
            made, rest = made + (rest[:2] if rest[1] in "%_\\" else rest[1]), rest[2:]
    return made


def _plain_column(pattern: Column) -> Column:
    """The same for patterns that are data."""
    open_end = (f.char_length(pattern) - f.char_length(f.rtrim(pattern, f.lit(_ESCAPE)))) % 2 == 1
    closed = f.when(open_end, f.concat(pattern, f.lit(_ESCAPE))).otherwise(pattern)
    return f.regexp_replace(closed, f.lit(r"(?s)(\\[%_\\])|\\([^%_\\])"), f.lit("$1$2"))
