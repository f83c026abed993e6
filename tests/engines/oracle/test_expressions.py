"""What every function and cast gives, value by value, on both databases."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from streamproof.engines.oracle.engine import Oracle
from streamproof.errors import StreamproofError
from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.expr import Call, Lit, walk
from streamproof.plan.functions import FUNCTIONS
from streamproof.plan.parse import parse
from streamproof.plan.text import to_text
from tests.engines.oracle.running import history, run

NAN, INF = math.nan, math.inf
LEAST, MOST = -(2**63), 2**63 - 1
COLUMNS = {
    "i": "int64", "j": "int64", "x": "float64", "y": "float64", "s": "string", "t": "string", "u": "string",
    "b": "bool", "c": "bool", "d": "decimal(10,2)", "e": "decimal(6,3)", "wide": "decimal(38,0)",
    "day": "date", "at": "timestamp", "nothing": "null",
}  # fmt: skip
NOON = datetime(2024, 5, 1, 12, 30, 15, 123456, tzinfo=UTC)

Row = tuple[str, dict[str, Any], Any]


def over(text: str, *pairs: tuple[Any, ...]) -> list[Row]:
    """One expression over several payloads: values of its columns in their order of mention, then the result."""
    names = list(dict.fromkeys(word for word in _words(text) if word in COLUMNS))
    return [(text, dict(zip(names, pair[:-1], strict=True)), pair[-1]) for pair in pairs]


def _words(text: str) -> list[str]:
    return "".join(char if char.isalnum() or char == "_" else " " for char in text).split()


class Fails(str):
    """The name of the error that is expected."""


OVERFLOW, BAD = Fails("overflow"), Fails("bad_input")

ARITHMETIC = [
    *over("i + j", (1, 2, 3), (MOST, 1, OVERFLOW), (LEAST, -1, OVERFLOW), (None, 1, None), (MOST, 0, MOST)),
    *over("i - j", (1, 2, -1), (LEAST, 1, OVERFLOW), (0, LEAST, OVERFLOW), (1, None, None)),
    *over("i * j", (6, 7, 42), (2**62, 2, OVERFLOW), (LEAST, -1, OVERFLOW), (-(2**62), 2, LEAST)),
    *over("x + y", (1.5, 2.0, 3.5), (1e308, 1e308, INF), (-1e308, -1e308, -INF), (INF, -INF, NAN), (NAN, 1.0, NAN)),
    *over("x - y", (1.5, 2.0, -0.5), (-1e308, 1e308, -INF), (INF, INF, NAN)),
    *over("x * y", (1.5, 2.0, 3.0), (1e200, 1e200, INF), (-1e200, 1e200, -INF), (1e-200, 1e-200, 0.0), (0.0, INF, NAN)),
    *over("i + x", (1, 0.5, 1.5), (None, 0.5, None)),
    *over("d + e", ("1.50", "0.125", "1.625"), ("99999999.99", "999.999", "100000999.989")),
    *over("d - e", ("1.50", "0.125", "1.375")),
    *over("d * e", ("12345678.99", "999.999", "12345666644.32101")),
    *over("d * d", ("12345678.99", "152415789724127.4201"), ("99999999.99", "9999999998000000.0001")),
    *over("wide + wide", ("5", "10"), ("9" * 38, OVERFLOW)),
    *over("wide * d", ("9" * 38, "2.00", OVERFLOW), ("7", "0.50", "3.50")),
    *over("d + i", ("1.50", 2, "3.50")),
    *over("i / j", (7, 2, 3.5), (-7, 2, -3.5), (1, 0, None), (0, 0, None), (LEAST, -1, float(2**63))),
    *over("x / y", (1.0, 0.0, None), (1.0, -0.0, None), (1e308, 1e-10, INF), (1e-308, 1e300, 0.0), (INF, INF, NAN)),
    *over("d / e", ("1.50", "0.500", 3.0), ("1.00", "0.000", None)),
    *over("i // j", (7, 2, 3), (-7, 2, -4), (7, -2, -4), (-7, -2, 3), (6, -2, -3), (1, 0, None), (LEAST, -1, OVERFLOW)),
    *over("x // y", (7.5, 2.0, 3.0), (-7.5, 2.0, -4.0), (1.0, 0.0, None), (1.0, 0.1, 10.0), (INF, 1.0, INF)),
    *over("i % j", (7, 3, 1), (-7, 3, -1), (7, -3, 1), (1, 0, None), (LEAST, -1, 0), (LEAST, 10, -8)),
    *over("x % y", (7.5, 2.0, 1.5), (-7.5, 2.0, -1.5), (1.0, 0.0, None), (1e308, 3.0, 2.0), (5.0, INF, 5.0),
          (INF, 2.0, NAN), (NAN, 2.0, NAN), (0.3, 0.1, math.fmod(0.3, 0.1)), (1e22, 7e-5, math.fmod(1e22, 7e-5))),
    *over("-(i)", (5, -5), (LEAST, OVERFLOW), (None, None)),
    *over("-(x)", (0.0, 0.0), (INF, -INF)),
    *over("-(d)", ("1.50", "-1.50")),
]  # fmt: skip
COMPARISON = [
    *over("i = j", (1, 1, True), (1, 2, False), (None, 1, None), (None, None, None)),
    *over("x = y", (NAN, NAN, True), (-0.0, 0.0, True), (NAN, 1.0, False), (INF, INF, True)),
    *over("x <> y", (NAN, NAN, False), (1.0, NAN, True)),
    *over("x < y", (INF, NAN, True), (NAN, INF, False), (NAN, NAN, False), (-0.0, 0.0, False)),
    *over("x >= y", (NAN, INF, True), (NAN, NAN, True)),
    *over("x > y", (NAN, INF, True), (1.0, 2.0, False)),
    *over("x <= y", (1.0, 1.0, True), (NAN, 1.0, False)),
    *over("s < t", ("a", "b", True), ("Z", "a", True), ("é", "z", False), ("\uffff", "\U00010000", True),
          ("", "a", True)),
    *over("s = t", ("a", "a", True), ("a", "A", False), ("a", "a ", False), ("é", "e\u0301", False)),
    *over("i = x", (1, 1.0, True), (2**53 + 1, float(2**53), True)),
    *over("d = i", ("2.00", 2, True), ("2.50", 2, False)),
    *over("d > e", ("1.50", "1.499", True)),
    *over("b < c", (False, True, True), (True, True, False)),
    *over("day < cast('2024-05-02' as date)", (date(2024, 5, 1), True)),
    *over("at = at", (NOON, True)),
    *over("i is not distinct from j", (None, None, True), (None, 1, False), (1, 1, True)),
    *over("x is not distinct from y", (NAN, NAN, True), (NAN, None, False)),
    *over("nothing is not distinct from i", (None, None, True), (None, 1, False)),
    *over("i in (1, 2, null)", (1, True), (3, None), (None, None)),
    *over("i in (1, 2)", (3, False)),
    *over("x in (1, cast('nan' as double))", (NAN, True), (2.0, False)),
    *over("i is null", (None, True), (1, False)),
    *over("nothing is null", (None, True)),
    *over("b and c", (True, None, None), (False, None, False), (None, False, False), (True, True, True),
          (None, None, None)),
    *over("b or c", (True, None, True), (None, True, True), (False, None, None), (False, False, False)),
    *over("not b", (True, False), (None, None)),
    *over("i between 1 and j", (2, 3, True), (4, 3, False), (2, None, None), (0, None, False)),
]  # fmt: skip
CHOICE = [
    *over("coalesce(i, j, 7)", (None, None, 7), (None, 3, 3), (1, 3, 1)),
    *over("coalesce(i, x)", (None, 1.5, 1.5), (2, None, 2.0)),
    *over("nullif(i, j)", (1, 1, None), (1, 2, 1), (1, None, 1), (None, 1, None)),
    *over("nullif(x, y)", (NAN, NAN, None), (0.0, -0.0, None)),
    *over("nullif(i, x)", (1, 1.0, None), (1, 2.0, 1)),
    *over("least(i, j)", (1, 2, 1), (None, 2, 2), (None, None, None)),
    *over("greatest(x, y)", (NAN, INF, NAN), (1.0, None, 1.0)),
    *over("least(x, y)", (NAN, INF, INF)),
    *over("greatest(s, t)", ("a", "B", "a"), (None, "x", "x")),
    *over("case when i > 0 then 'plus' when i < 0 then 'minus' else 'zero' end",
          (1, "plus"), (-1, "minus"), (0, "zero"), (None, "zero")),
    *over("case when i > 0 then i end", (0, None)),
    *over("case when i > 0 then i + 9223372036854775807 else 0 end", (0, 0), (1, OVERFLOW)),
    *over("case when b then 9223372036854775807 + 1 else 0 end", (False, 0), (None, 0), (True, OVERFLOW)),
    *over("case when b then cast(s as bigint) else -1 end", (False, "x", -1), (True, "x", BAD), (True, "5", 5)),
    *over("case i when 1 then 2.5 else j end", (1, 7, 2.5), (2, 7, 7.0)),
]  # fmt: skip
NUMBERS = [
    *over("abs(i)", (-5, 5), (LEAST, OVERFLOW), (None, None)),
    *over("abs(x)", (-1.5, 1.5), (-INF, INF), (NAN, NAN)),
    *over("abs(d)", ("-1.50", "1.50")),
    *over("sign(x)", (-2.5, -1), (0.0, 0), (NAN, 0), (INF, 1)),
    *over("sign(i)", (LEAST, -1), (0, 0), (3, 1)),
    *over("sign(d)", ("-0.01", -1)),
    *over("round(x)", (2.5, 3.0), (-2.5, -3.0), (0.49999999999999994, 0.0), (4503599627370497.0, 4503599627370497.0),
          (NAN, NAN), (INF, INF), (1e300, 1e300)),
    *over("round(x, 2)", (2.675, 2.68), (1.005, 1.0), (-1.125, -1.13), (1e300, 1e300), (NAN, NAN)),
    *over("round(x, -2)", (150.0, 200.0), (-149.0, -100.0), (INF, INF)),
    *over("round(x, i)", (1.25, 1, 1.3), (1.5, 400, 1.5), (1.5, -400, 0.0), (1.5, None, None)),
    *over("round(i, -1)", (15, 20), (-15, -20), (14, 10), (MOST, OVERFLOW)),
    *over("round(i, 3)", (15, 15)),
    *over("round(i, -19)", (4 * 10**18, 0), (5 * 10**18, OVERFLOW)),
    *over("round(i, -25)", (MOST, 0)),
    *over("round(d)", ("2.50", "3"), ("-2.50", "-3"), ("99999999.99", "100000000")),
    *over("floor(x)", (-0.5, -1.0), (2.9, 2.0), (INF, INF)),
    *over("floor(d)", ("-2.50", "-3")),
    *over("floor(i)", (-3, -3)),
    *over("ceil(x)", (-0.5, 0.0), (2.1, 3.0)),
    *over("ceil(d)", ("2.01", "3"), ("99999999.99", "100000000")),
    *over("sqrt(x)", (4.0, 2.0), (-1.0, None), (0.0, 0.0), (NAN, NAN), (INF, INF), (None, None)),
    *over("sqrt(i)", (16, 4.0)),
    *over("ln(x)", (1.0, 0.0), (0.0, None), (-1.0, None), (NAN, NAN), (INF, INF)),
    *over("log10(x)", (1000.0, 3.0), (0.0, None)),
    *over("exp(x)", (0.0, 1.0), (1000.0, INF), (-1000.0, 0.0), (NAN, NAN), (-INF, 0.0)),
    *over("power(x, y)", (2.0, 10.0, 1024.0), (-8.0, 1 / 3, None), (0.0, -1.0, None), (-2.0, 3.0, -8.0),
          (NAN, 0.0, 1.0),
          (1.0, NAN, 1.0), (10.0, 400.0, INF), (-10.0, 401.0, -INF), (10.0, -400.0, 0.0), (2.0, None, None),
          (-INF, 0.5, None)),
    *over("power(i, j)", (3, 2, 9.0), (0, 0, 1.0)),
]  # fmt: skip
TEXT = [
    *over("s || t", ("a", "b", "ab"), ("a", None, None), ("", "", "")),
    *over("concat(s, t, u)", ("a", "b", "c", "abc"), ("a", None, "c", None)),
    *over("lower(s)", ("ABC", "abc"), ("ÉΣĐ", "éσđ"), ("", ""), (None, None), ("日A", "日a")),
    *over("upper(s)", ("abc", "ABC"), ("éçø", "ÉÇØ"), ("ß1", "ß1")),
    *over("trim(s)", ("  a b ", "a b"), ("\ta\t", "\ta\t"), ("\u00a0a", "\u00a0a")),
    *over("ltrim(s)", ("  a ", "a ")),
    *over("rtrim(s)", ("  a ", "  a")),
    *over("substr(s, i)", ("héllo", 2, "éllo"), ("hello", 0, "hello"), ("hello", -3, "hello"), ("hello", 9, ""),
          ("hello", MOST, ""), ("hello", LEAST, "hello"), ("hello", None, None), (None, 1, None)),
    *over("substr(s, i, j)", ("héllo", 2, 2, "él"), ("hello", 0, 3, "he"), ("hello", -1, 3, "h"), ("hello", 2, 0, ""),
          ("hello", 2, -1, ""), ("hello", 2, MOST, "ello"), ("hello", LEAST, MOST, ""), ("hello", 1, None, None)),
    *over("length(s)", ("", 0), ("é日😀", 3), ("e\u0301", 2), (None, None)),
    *over("replace(s, t, u)", ("banana", "an", "-", "b--a"), ("abc", "", "x", "abc"), ("abc", "b", "", "ac"),
          ("abc", None, "x", None)),
    *over("contains(s, t)", ("banana", "nan", True), ("banana", "", True), ("a", "ab", False), (None, "a", None)),
    *over("starts_with(s, t)", ("banana", "ba", True), ("banana", "", True), ("b", "ba", False)),
    *over("ends_with(s, t)", ("banana", "na", True), ("banana", "", True), ("a", "na", False), ("日é", "é", True)),
    *over("s like t", ("banana", "b%a", True), ("banana", "b_n%", True), ("50%", "50\\%", True),
          ("50x", "50\\%", False),
          ("a_b", "a\\_b", True), ("a\\b", "a\\\\b", True), ("a\nb", "a%b", True), ("é", "_", True), ("😀", "_", True),
          ("A", "a", False), ("a\\", "a\\", True), ("a", None, None), ("", "%", True), ("", "", True), ("a", "",
          False)),
    *over("not (s like 'a%')", ("b", True), (None, None)),
]  # fmt: skip
TIME = [
    *over("year(at)", (NOON, 2024), (datetime(1, 1, 1, tzinfo=UTC), 1), (None, None)),
    *over("month(day)", (date(1969, 12, 31), 12), (date(2024, 2, 29), 2)),
    *over("day(day)", (date(1969, 12, 31), 31), (date(2000, 2, 29), 29), (date(1, 1, 1), 1), (date(9999, 12, 31), 31)),
    *over("hour(at)", (NOON, 12), (datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), 23)),
    *over("hour(day)", (date(2024, 5, 1), 0)),
    *over("minute(at)", (NOON, 30)),
    *over("second(at)", (NOON, 15), (datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), 59)),
    *over("day_of_week(day)", (date(1970, 1, 1), 4), (date(2024, 5, 5), 7), (date(1969, 12, 29), 1)),
    *over("day_of_year(day)", (date(2024, 12, 31), 366), (date(1969, 1, 1), 1)),
    *over("epoch(at)", (NOON, 1714566615), (datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), -1)),
    *over("epoch(day)", (date(1970, 1, 2), 86400)),
    *over("instant(i)", (1500, datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=UTC)),
          (-1, datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
          (2**62, None), (-(2**62), None), (2**61, OVERFLOW), (None, None),
          (253402300799999, datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
          (253402300800000, OVERFLOW)),
    *over("year(i)", (0, 1970), (2**62, None)),
]  # fmt: skip
CASTS = [
    *over("cast(x as bigint)", (2.5, 3), (3.5, 4), (-2.5, -3), (0.5, 1), (-0.5, -1), (1.5, 2),
          (0.49999999999999994, 0), (4503599627370495.5, 4503599627370496),
          (1e19, OVERFLOW), (NAN, OVERFLOW), (INF, OVERFLOW),
          (-9223372036854775808.0, LEAST), (9223372036854775807.0, OVERFLOW), (None, None)),
    *over("try_cast(x as bigint)", (1e19, None), (NAN, None), (2.5, 3)),
    *over("cast(d as bigint)", ("2.50", 3), ("3.50", 4), ("-2.50", -3), ("2.51", 3), ("0.50", 1), ("-0.49", 0)),
    *over("cast(wide as bigint)", ("9" * 20, OVERFLOW), ("-9223372036854775808", LEAST)),
    *over("try_cast(wide as bigint)", ("9" * 20, None)),
    *over("cast(s as bigint)", ("12", 12), (" -7 ", -7), ("+5", 5), ("007", 7), ("1.0", BAD), ("", BAD), ("1e3", BAD),
          ("9223372036854775808", BAD), ("-9223372036854775808", LEAST), ("١", BAD), ("1_0", BAD), (None, None),
          ("5\n", BAD)),
    *over("try_cast(s as bigint)", ("x", None), ("9223372036854775808", None), ("12", 12)),
    *over("cast(b as bigint)", (True, 1), (False, 0)),
    *over("cast(i as double)", (2**53 + 1, float(2**53)), (MOST, float(2**63))),
    *over("cast(d as double)", ("0.10", 0.1), ("12345678.99", 12345678.99)),
    *over("cast(wide as double)", ("12345678901234567890123456789012345678", 12345678901234567890123456789012345678.0)),
    *over("cast(s as double)", ("1.5", 1.5), (" 1e400 ", INF), ("-1e400", -INF), ("1e-400", 0.0), ("inf", INF),
          ("-Infinity", -INF),
          ("nan", NAN), (".5", 0.5), ("5.", 5.0), ("x", BAD), ("", BAD), ("1e", BAD), ("0x10", BAD), ("5e-324",
          5e-324)),
    *over("try_cast(s as double)", ("x", None), ("2.5", 2.5)),
    *over("cast(b as double)", (True, 1.0)),
    *over("cast(x as decimal(5,2))", (0.125, "0.13"), (-0.125, "-0.13"), (2.675, "2.68"), (0.135, "0.14"),
          (999.994, "999.99"), (999.995, OVERFLOW),
          (NAN, OVERFLOW), (1e-30, "0.00"), (-1.005, "-1.01"), (1e300, OVERFLOW)),
    *over("try_cast(x as decimal(5,2))", (1000.0, None), (1.5, "1.50"), (-INF, None)),
    *over("cast(i as decimal(5,2))", (999, "999.00"), (1000, OVERFLOW)),
    *over("cast(e as decimal(4,1))", ("1.250", "1.3"), ("1.350", "1.4"), ("-1.250", "-1.3"), ("1.251", "1.3"),
          ("999.949", "999.9"), ("999.950", OVERFLOW), ("999.951", OVERFLOW)),
    *over("try_cast(e as decimal(3,1))", ("999.000", None)),
    *over("cast(e as decimal(10,5))", ("1.250", "1.25000")),
    *over("cast(s as decimal(5,2))", ("1.5", "1.50"), ("1.005", "1.01"), ("1.015", "1.02"), ("1e2", "100.00"),
          ("15e-1", "1.50"), ("1000", BAD),
          ("nan", BAD), ("x", BAD), ("1e999999999999", BAD), ("1e-999999999999", "0.00"), ("0e999999999999", "0.00"),
          ("-0.005", "-0.01"), ("0.0049", "0.00"), (".5", "0.50"), ("999.995", BAD)),
    *over("try_cast(s as decimal(38,10))", ("1" * 28 + "." + "1" * 11, "1" * 28 + "." + "1" * 10), ("1" * 29, None)),
    *over("cast(s as boolean)", ("true", True), (" FALSE ", False), ("t", BAD), ("1", BAD)),
    *over("try_cast(s as boolean)", ("yes", None)),
    *over("cast(i as boolean)", (0, False), (-3, True)),
    *over("cast(x as boolean)", (0.0, False), (NAN, True)),
    *over("cast(s as date)", ("2024-02-29", date(2024, 2, 29)), ("2023-02-29", BAD), ("0000-01-01", BAD),
          ("2024-2-9", BAD), ("2024-13-01", BAD),
          ("9999-12-31", date(9999, 12, 31)), ("0001-01-01", date(1, 1, 1)), ("2024-05-01T00:00", BAD)),
    *over("try_cast(s as date)", ("2023-02-29", None), (" 2024-05-01 ", date(2024, 5, 1))),
    *over("cast(s as timestamptz)", ("2024-05-01T12:30:15.123456Z", NOON), ("2024-05-01 14:30:15.123456+02:00", NOON),
          ("2024-05-01T12:30:15", BAD),
          ("2024-05-01T25:00:00Z", BAD), ("2024-05-01T00:00:00.5Z", datetime(2024, 5, 1, 0, 0, 0, 500000, tzinfo=UTC)),
          ("2024-05-01T00:00Z", datetime(2024, 5, 1, tzinfo=UTC)), ("0001-01-01T00:00:00+05:00", BAD),
          ("2024-05-01T00:00:00-0530", datetime(2024, 5, 1, 5, 30, tzinfo=UTC)),
          ("2024-05-01T00:60:00Z", BAD), ("1969-12-31T23:59:59.999999Z",
          datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))),
    *over("try_cast(s as timestamptz)", ("2024-05-01", None), ("", None)),
    *over("cast(day as timestamptz)", (date(1969, 12, 31), datetime(1969, 12, 31, tzinfo=UTC))),
    *over("cast(at as date)", (NOON, date(2024, 5, 1)), (datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
          date(1969, 12, 31))),
    *over("cast(i as varchar)", (LEAST, str(LEAST)), (0, "0")),
    *over("cast(x as varchar)", *((value, repr(value)) for value in (
        1.0, 1e16, 1e15, 123456789012345680.0, 0.0001, 0.00001, 1e-7, 5e-324, 1.7976931348623157e308, 0.1, 100.0,
        1e22, 1.5e-10, 9007199254740993.0, 3.101420009740581e16, -2.5, 123456.789, INF, -INF, NAN, 1e100, 12345678.9)),
          (-0.0, "0.0")),
    *over("cast(d as varchar)", ("1.50", "1.50"), ("-0.05", "-0.05"), ("0.00", "0.00")),
    *over("cast(b as varchar)", (True, "true"), (False, "false")),
    *over("cast(day as varchar)", (date(33, 4, 3), "0033-04-03"), (date(2024, 5, 1), "2024-05-01")),
    *over("cast(at as varchar)", (NOON, "2024-05-01T12:30:15.123456Z"), (datetime(2024, 5, 1, 12, tzinfo=UTC),
          "2024-05-01T12:00:00Z"),
          (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00Z"),
          (datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC), "1969-12-31T23:59:59.500000Z")),
    *over("cast(nothing as varchar)", (None, None)),
    *over("cast(cast(x as varchar) as double)", (0.1, 0.1), (1e-310, 1e-310)),
]  # fmt: skip
TABLE = [*ARITHMETIC, *COMPARISON, *CHOICE, *NUMBERS, *TEXT, *TIME, *CASTS]
VALUES: dict[str, list[tuple[dict[str, Any], Any]]] = {}  # by expression: payloads that have a result
for expression, columns, result in TABLE:
    if not isinstance(result, Fails):
        VALUES.setdefault(expression, []).append((columns, result))


def test_the_table_covers_every_function() -> None:
    seen = {part.fn for text, _, _ in TABLE for part in walk(parse(text)) if isinstance(part, Call)}
    assert seen == set(FUNCTIONS)
    assert len(TABLE) > 300


@pytest.mark.parametrize("text", VALUES)
def test_values(text: str, engine: Oracle) -> None:
    """Every payload is an event of its own, in the order of the table."""
    rows = [{name: _given(name, value) for name, value in payload.items()} for payload, _ in VALUES[text]]
    stream = history(COLUMNS, [(n, n + 1, row) for n, row in enumerate(rows)], unit="ms")
    found = run(engine, _selected(text), S=stream)
    pairs = zip((row.payload["out"] for row in found.to_rows()), VALUES[text], strict=True)
    wrong = [(payload, expected, value) for value, (payload, expected) in pairs if not _same(value, expected)]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "payload", "name"), [row for row in TABLE if isinstance(row[2], Fails)], ids=lambda value: str(value)[:40]
)
def test_failures(text: str, payload: dict[str, Any], name: str, engine: Oracle) -> None:
    stream = history(COLUMNS, [(0, 1, {name: _given(name, value) for name, value in payload.items()})], unit="ms")
    with pytest.raises(StreamproofError) as caught:
        run(engine, _selected(text), S=stream)
    assert caught.value.name == name


def _selected(text: str) -> nodes.Plan:
    return nodes.Select(nodes.Source("S"), (("out", parse(text)),))


def _given(name: str, value: Any) -> Any:
    return Decimal(value) if isinstance(value, str) and COLUMNS[name].startswith("decimal") else value


def _same(found: Any, expected: Any) -> bool:
    if isinstance(found, Decimal):
        return isinstance(expected, str) and found == Decimal(expected)
    if isinstance(found, float) and isinstance(expected, float):
        return (math.isnan(found) and math.isnan(expected)) or math.isclose(found, expected, rel_tol=1e-15)
    return type(found) is type(expected) and found == expected


@pytest.mark.parametrize("text", ["cast(s as bigint)", "cast(s as timestamptz)"])
def test_a_failing_cast_says_which_value_and_what_to_do(text: str, engine: Oracle) -> None:
    stream = history({"s": "string"}, [(0, 1, {"s": "it's | no\nnumber"})])
    with pytest.raises(StreamproofError) as caught:
        run(engine, nodes.Select(nodes.Source("S"), (("out", parse(text)),)), S=stream)
    assert "it's | no" in caught.value.what
    assert caught.value.fix == "use try_cast, which gives null there"
    assert to_text(parse(text)) in str(caught.value)


def test_deeply_nested_arithmetic_stays_small(engine: Oracle) -> None:
    """A value that is used twice is written once: the text must not double with every level."""
    text = "i"
    for _ in range(40):
        text = f"({text}) // 1"
    stream = history({"i": "int64"}, [(0, 1, {"i": 7})])
    found = run(engine, nodes.Select(nodes.Source("S"), (("out", parse(text)),)), S=stream)
    assert found.to_rows()[0].payload == {"out": 7}


def test_literals_of_every_type_come_through(engine: Oracle) -> None:
    values: dict[str, tuple[Any, str]] = {
        "i": (LEAST, "int64"), "x": (5e-324, "float64"), "n": (NAN, "float64"), "s": ("a'b\"c\\d\n--é😀", "string"),
        "b": (True, "bool"), "d": (Decimal("-12.345"), "decimal(5,3)"), "day": (date(1, 1, 1), "date"),
        "at": (NOON, "timestamp"), "z": (None, "string"),
    }  # fmt: skip
    schema = Schema.of({name: kind for name, (_, kind) in values.items()})
    exprs = tuple((name, Lit(value, schema[name])) for name, (value, _) in values.items())
    found = run(engine, nodes.Select(nodes.Source("S"), exprs), S=history({}, [(0, 1, {})]))
    payload = found.to_rows()[0].payload
    assert payload.pop("at") == NOON
    assert repr(payload) == repr({name: value for name, (value, _) in values.items() if name != "at"})
