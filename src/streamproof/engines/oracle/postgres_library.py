"""Functions that PostgreSQL lacks, or where its own would raise: created in pg_temp when first used, gone with the run.

Each is named ``sp_…``. Functions that can raise are volatile, so that no planner evaluates them ahead of a CASE.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from streamproof.engines.oracle.dialect import MARK, quote
from streamproof.engines.oracle.letters import case_pairs
from streamproof.engines.oracle.postgres_conversions import CONVERSIONS, function
from streamproof.plan.limits import LONGEST_TEXT

_NAME: Final = re.compile(r"pg_temp\.(sp_\w+)")


def _checked_float(name: str, operator: str, limits: str, beyond: str) -> str:
    """An operation on floats that is safe within limits; beyond them an error of PostgreSQL becomes an IEEE value."""
    return function(
        f"{name}(a float8, b float8)",
        "float8",
        f"""BEGIN
          IF {limits} THEN RETURN a {operator} b; END IF;
          BEGIN
            RETURN a {operator} b;
          EXCEPTION WHEN numeric_value_out_of_range THEN
            RETURN {beyond};
          END;
        END""",
    )


_SIGNED_INFINITY = "CASE WHEN (a < 0) = (b < 0) THEN 'inf'::float8 ELSE '-inf'::float8 END"
_SAFE = "abs({0}) < 1e150 AND abs({0}) > 1e-150"
_BOTH_SAFE = f"{_SAFE.format('a')} AND {_SAFE.format('b')}"
LIBRARY: Final[dict[str, str]] = {
    "sp_opaque": function("sp_opaque(x anyelement)", "anyelement", "RETURN x;", volatile=True, strict=False),
    "sp_check": function(
        "sp_check(fit anyelement, given text, name text, kind text)",
        "anyelement",
        f"IF fit IS NULL AND given IS NOT NULL THEN RAISE EXCEPTION USING MESSAGE ="
        f" '{MARK}|' || name || '|' || kind || '|' || given; END IF; RETURN fit;",
        volatile=True,
        strict=False,
    ),
    "sp_and": function("sp_and(a boolean, b boolean)", "boolean", "RETURN a AND b;", volatile=True, strict=False),
    "sp_or": function("sp_or(a boolean, b boolean)", "boolean", "RETURN a OR b;", volatile=True, strict=False),
    # --- arithmetic
    "sp_add": _checked_float(
        "sp_add", "+", "abs(a) < 8e307 AND abs(b) < 8e307", "CASE WHEN a > 0 THEN 'inf'::float8 ELSE '-inf'::float8 END"
    ),
    "sp_sub": _checked_float(
        "sp_sub", "-", "abs(a) < 8e307 AND abs(b) < 8e307", "CASE WHEN a > 0 THEN 'inf'::float8 ELSE '-inf'::float8 END"
    ),
    "sp_mul": _checked_float(
        "sp_mul", "*", _BOTH_SAFE, f"CASE WHEN abs(a) < 1 AND abs(b) < 1 THEN 0 ELSE {_SIGNED_INFINITY} END"
    ),
    "sp_quotient": _checked_float(
        "sp_quotient",
        "/",
        _BOTH_SAFE,
        f"CASE WHEN abs(a) < 1 OR abs(b) > 1 THEN CASE WHEN abs(a) > abs(b)"
        f" THEN {_SIGNED_INFINITY} ELSE 0 END ELSE {_SIGNED_INFINITY} END",
    ),
    "sp_div": function(
        "sp_div(a float8, b float8)", "float8", "IF b = 0 THEN RETURN NULL; END IF; RETURN pg_temp.sp_quotient(a, b);"
    ),
    "sp_floordiv": function(
        "sp_floordiv(a bigint, b bigint)",
        "bigint",
        "IF b = 0 THEN RETURN NULL; END IF;"
        " RETURN a / b - CASE WHEN a % b <> 0 AND (a < 0) <> (b < 0) THEN 1 ELSE 0 END;",
        volatile=True,
    ),
    "sp_mod": function("sp_mod(a bigint, b bigint)", "bigint", "IF b = 0 THEN RETURN NULL; END IF; RETURN a % b;"),
    "sp_fmod": function(
        "sp_fmod(a float8, b float8)",
        "float8",
        "IF b = 0 THEN RETURN NULL; END IF;"
        " IF a = 'nan' OR b = 'nan' OR abs(a) = 'inf' THEN RETURN 'nan'; END IF;"
        " IF abs(b) = 'inf' OR abs(a) < abs(b) THEN RETURN a; END IF;"
        " RETURN mod(pg_temp.sp_exact(a), pg_temp.sp_exact(b))::float8;",
    ),
    "sp_exact": function(
        "sp_exact(x float8)",
        "numeric",
        """DECLARE
          bits bigint := ('x' || encode(float8send(abs(x)), 'hex'))::bit(64)::bigint;
          e int := (bits >> 52)::int; m numeric := bits & 4503599627370495; k int;
        BEGIN
          IF e > 0 THEN m := m + 4503599627370496; ELSE e := 1; END IF;
          e := e - 1075; k := abs(e);
          IF e < 0 THEN m := m * ('1e-' || k)::numeric; END IF;
          WHILE k >= 20 LOOP m := m * CASE WHEN e < 0 THEN 95367431640625 ELSE 1048576 END; k := k - 20; END LOOP;
          WHILE k > 0 LOOP m := m * CASE WHEN e < 0 THEN 5 ELSE 2 END; k := k - 1; END LOOP;
          RETURN CASE WHEN x < 0 THEN -m ELSE m END;
        END""",
    ),
    "sp_sign": function("sp_sign(x float8)", "bigint", "RETURN CASE WHEN x = 'nan' THEN 0 ELSE sign(x) END;"),
    "sp_round": function(
        "sp_round(x float8)",
        "float8",
        "RETURN CASE WHEN abs(x) >= 4503599627370496 THEN x"
        " ELSE trunc(x) + CASE WHEN abs(x - trunc(x)) >= 0.5 THEN sign(x) ELSE 0 END END;",
    ),
    "sp_round_float": function(
        "sp_round_float(x float8, n bigint)",
        "float8",
        """DECLARE unit float8; scaled float8;
        BEGIN
          IF x = 'nan' OR abs(x) = 'inf' OR n > 308 THEN RETURN x; END IF;
          IF n < -308 THEN RETURN 0; END IF;
          unit := power(10::float8, abs(n)::float8);
          IF n < 0 THEN RETURN pg_temp.sp_mul(pg_temp.sp_round(pg_temp.sp_quotient(x, unit)), unit); END IF;
          scaled := pg_temp.sp_mul(x, unit);
          RETURN CASE WHEN abs(scaled) = 'inf' THEN x ELSE pg_temp.sp_quotient(pg_temp.sp_round(scaled), unit) END;
        END""",
    ),
    "sp_round_whole": function(
        "sp_round_whole(x bigint, n bigint)",
        "bigint",
        "RETURN CASE WHEN n >= 0 THEN x WHEN n < -19 THEN 0 ELSE round(x::numeric, n::int)::bigint END;",
        volatile=True,
    ),
    "sp_sqrt": function("sp_sqrt(x float8)", "float8", "RETURN CASE WHEN x < 0 THEN NULL ELSE sqrt(x) END;"),
    "sp_ln": function("sp_ln(x float8)", "float8", "RETURN CASE WHEN x <= 0 THEN NULL ELSE ln(x) END;"),
    "sp_log10": function("sp_log10(x float8)", "float8", "RETURN CASE WHEN x <= 0 THEN NULL ELSE log(x) END;"),
    "sp_exp": function(
        "sp_exp(x float8)",
        "float8",
        """BEGIN RETURN exp(x); EXCEPTION WHEN numeric_value_out_of_range THEN
          RETURN CASE WHEN x > 0 THEN 'inf'::float8 ELSE 0 END; END""",
    ),
    "sp_power": function(
        "sp_power(a float8, b float8)",
        "float8",
        """DECLARE odd boolean;
        BEGIN
          IF (a < 0 AND b <> 'nan' AND abs(b) <> 'inf' AND floor(b) <> b) OR (a = 0 AND b < 0) THEN RETURN NULL; END IF;
          RETURN power(a, b);
        EXCEPTION WHEN numeric_value_out_of_range THEN
          IF (abs(a) > 1) <> (b > 0) THEN RETURN 0; END IF;
          odd := abs(b) < 9007199254740992 AND b::bigint % 2 <> 0;
          RETURN CASE WHEN a < 0 AND odd THEN '-inf'::float8 ELSE 'inf'::float8 END;
        END""",
    ),
    # --- text
    "sp_lower": "",  # filled in below: they carry a long table
    "sp_upper": "",
    "sp_limited": function(
        "sp_limited(size bigint)",
        "boolean",
        f"IF size > {LONGEST_TEXT} THEN RAISE EXCEPTION USING MESSAGE ="
        f" '{MARK}|limit_exceeded|string|' || size; END IF; RETURN true;",
        volatile=True,
    ),
    "sp_concat": function(
        "sp_concat(a text, b text)",
        "text",
        "IF pg_temp.sp_limited(octet_length(a)::bigint + octet_length(b)) THEN RETURN a || b; END IF;",
        volatile=True,
    ),
    "sp_replace": function(
        "sp_replace(s text, old text, new text)",
        "text",
        """DECLARE count bigint := (octet_length(s) - octet_length(replace(s, old, ''))) / nullif(octet_length(old), 0);
        BEGIN
          IF pg_temp.sp_limited(octet_length(s) + count * (octet_length(new) - octet_length(old))) THEN
            RETURN replace(s, old, new);
          END IF;
          RETURN s;
        END""",
        volatile=True,
    ),
    "sp_substr": function(
        "sp_substr(s text, start bigint, size bigint)",
        "text",
        """DECLARE n numeric := start::numeric + size - greatest(start, 1);
        BEGIN
          RETURN substr(s, greatest(least(start, 2147483647), 1)::int, greatest(least(n, 2147483647), 0)::int);
        END""",
    ),
    "sp_substr_from": function(
        "sp_substr_from(s text, start bigint)", "text", "RETURN substr(s, greatest(least(start, 2147483647), 1)::int);"
    ),
    "sp_ends_with": function("sp_ends_with(a text, b text)", "boolean", "RETURN right(a, length(b)) = b OR b = '';"),
} | CONVERSIONS


def source_of(name: str) -> str:
    """The statement that creates a function."""
    if name in ("sp_lower", "sp_upper"):
        plain = name.removeprefix("sp_")
        old, new = (quote(text) for text in case_pairs(lower=plain == "lower"))
        return function(
            f"{name}(s text)",
            "text",
            f'RETURN CASE WHEN octet_length(s) = length(s) THEN {plain}(s COLLATE "C")'
            f" ELSE translate(s, {old}, {new}) END;",
        )
    return LIBRARY[name]


def needed(statement: str) -> Iterator[str]:
    """The names of the functions that a statement uses, those they use themselves first.

    >>> list(needed("SELECT pg_temp.sp_day_of_year(1)"))
    ['sp_floordiv', 'sp_days', 'sp_year', 'sp_day_of_year']
    """
    seen: dict[str, None] = {}

    def visit(name: str) -> None:
        if name in seen:
            return
        for inner in sorted(set(_NAME.findall(LIBRARY[name])) - {name}):
            visit(inner)
        seen[name] = None

    for name in _NAME.findall(statement):
        visit(name)
    yield from seen
