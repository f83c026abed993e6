"""Functions that PostgreSQL lacks, or where its own would raise: created in pg_temp when first used, gone with the run.

Each is named ``sp_…``. Functions that can raise are volatile, so that no planner evaluates them ahead of a CASE. Those
of dates, times and casts give null where a value does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from streamproof.engines.oracle.dialect import MARK, quote
from streamproof.plan.case_mapping import case_pairs
from streamproof.plan.limits import LONGEST_TEXT

_NUMBER: Final = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"


def function(signature: str, returns: str, body: str, *, volatile: bool = False, strict: bool = True) -> str:
    words = ("VOLATILE" if volatile else "IMMUTABLE") + (" STRICT" if strict else "")
    code = body if body.lstrip().startswith(("DECLARE", "BEGIN")) else f"BEGIN {body} END"
    return f"CREATE FUNCTION pg_temp.{signature} RETURNS {returns} LANGUAGE plpgsql {words} AS $body$ {code} $body$"


_CALENDAR = """DECLARE
    z bigint := days + 719468; era bigint; doe bigint; yoe bigint; doy bigint; mp bigint; d bigint; m bigint; y bigint;
BEGIN
    era := pg_temp.sp_floordiv(z, 146097); doe := z - era * 146097;
    yoe := (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    doy := doe - (365 * yoe + yoe / 4 - yoe / 100); mp := (5 * doy + 2) / 153;
    d := doy - (153 * mp + 2) / 5 + 1; m := CASE WHEN mp < 10 THEN mp + 3 ELSE mp - 9 END;
    y := yoe + era * 400 + CASE WHEN m <= 2 THEN 1 ELSE 0 END;
    RETURN """
_DAYS = """DECLARE yy bigint := y - CASE WHEN m <= 2 THEN 1 ELSE 0 END; era bigint; yoe bigint; doy bigint;
BEGIN
    era := pg_temp.sp_floordiv(yy, 400); yoe := yy - era * 400;
    doy := (153 * (m + CASE WHEN m > 2 THEN -3 ELSE 9 END) + 2) / 5 + d - 1;
    RETURN era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
END"""

CONVERSIONS: Final[dict[str, str]] = {
    # --- calendar
    "sp_year": function("sp_year(days bigint)", "bigint", _CALENDAR + "y; END"),
    "sp_month": function("sp_month(days bigint)", "bigint", _CALENDAR + "m; END"),
    "sp_day": function("sp_day(days bigint)", "bigint", _CALENDAR + "d; END"),
    "sp_days": function("sp_days(y bigint, m bigint, d bigint)", "bigint", _DAYS),
    "sp_day_of_year": function(
        "sp_day_of_year(days bigint)", "bigint", "RETURN days - pg_temp.sp_days(pg_temp.sp_year(days), 1, 1) + 1;"
    ),
    # --- casts
    "sp_quantize": function(
        "sp_quantize(x numeric, digits int, scale int)",
        "numeric",
        """DECLARE
          r numeric := round(x, scale);  -- halves away from zero
        BEGIN
          RETURN CASE WHEN abs(r) < ('1e' || (digits - scale))::numeric THEN r END;
        END""",
    ),
    "sp_float_whole": function(
        "sp_float_whole(x float8)",
        "bigint",
        "DECLARE r float8 := trunc(x) + CASE WHEN abs(x - trunc(x)) >= 0.5 THEN sign(x) ELSE 0 END;"
        " BEGIN RETURN CASE WHEN r >= -9223372036854775808 AND r < 9223372036854775808 THEN r::bigint END; END",
    ),
    "sp_numeric_whole": function(
        "sp_numeric_whole(x numeric)",
        "bigint",
        "RETURN CASE WHEN x BETWEEN -9223372036854775808 AND 9223372036854775807 THEN x::bigint END;",
    ),
    "sp_float_numeric": function(
        "sp_float_numeric(x float8)",
        "numeric",
        "RETURN CASE WHEN x = 'nan' OR abs(x) = 'inf' THEN NULL ELSE pg_temp.sp_float_text(x)::numeric END;",
    ),
    "sp_float_text": function(
        "sp_float_text(given float8)",
        "text",
        r"""DECLARE
          x float8 := given + 0.0; sign text := CASE WHEN x < 0 THEN '-' ELSE '' END;
          parts text[]; digits text; point int; e text; exact numeric; shorter numeric;
        BEGIN
          IF x = 'nan' THEN RETURN 'nan'; END IF;
          IF abs(x) = 'inf' THEN RETURN sign || 'inf'; END IF;
          IF x = 0 THEN RETURN '0.0'; END IF;
          parts := regexp_match(abs(x)::text, '^([0-9]+)\.?([0-9]*)(?:e([+-][0-9]+))?$');
          digits := parts[1] || parts[2];
          point := length(parts[1]) + coalesce(parts[3], '0')::int;
          point := point - (length(digits) - length(ltrim(digits, '0')));
          digits := rtrim(ltrim(digits, '0'), '0');
          IF abs(x) >= 9007199254740992 AND abs(x) < 1e25 THEN  -- fewer digits may lie halfway to a neighbour
            exact := pg_temp.sp_exact(abs(x));
            WHILE length(digits) > 1 LOOP
              shorter := round(exact, length(digits) - 1 - length(trunc(exact)::text));
              EXIT WHEN shorter::float8 <> abs(x);
              digits := rtrim(trunc(shorter)::text, '0'); point := length(trunc(shorter)::text);
            END LOOP;
          END IF;
          IF point > 16 OR point < -3 THEN
            e := abs(point - 1)::text;
            RETURN sign || left(digits, 1) || CASE WHEN length(digits) > 1 THEN '.' || substr(digits, 2) ELSE '' END
              || 'e' || CASE WHEN point > 0 THEN '+' ELSE '-' END || lpad(e, greatest(2, length(e)), '0');
          END IF;
          IF point <= 0 THEN RETURN sign || '0.' || repeat('0', -point) || digits; END IF;
          IF point >= length(digits) THEN RETURN sign || digits || repeat('0', point - length(digits)) || '.0'; END IF;
          RETURN sign || left(digits, point) || '.' || substr(digits, point + 1);
        END""",
    ),
    "sp_text_whole": function(
        "sp_text_whole(given text)",
        "bigint",
        "IF btrim(given, ' ') !~ '^[+-]?[0-9]+$' THEN RETURN NULL; END IF;"
        " RETURN pg_temp.sp_numeric_whole(btrim(given, ' ')::numeric);",
    ),
    "sp_text_numeric": function(
        "sp_text_numeric(given text)",
        "numeric",
        f"""DECLARE t text := btrim(given, ' '); e text; digits text;
        BEGIN
          IF t !~ '^{_NUMBER}$' THEN RETURN NULL; END IF;
          e := coalesce(ltrim(substring(t from '[eE][+]?(-?[0-9]+)$'), '0'), '');
          digits := regexp_replace(t, '[eE].*', '');
          IF regexp_replace(digits, '[^1-9]', '', 'g') = '' THEN RETURN 0; END IF;
          IF length(e) > 5 OR abs(coalesce(nullif(nullif(e, ''), '-'), '0')::int) > 5000 THEN
            RETURN CASE WHEN e LIKE '-%' THEN 0 END;
          END IF;
          RETURN t::numeric;
        END""",
    ),
    "sp_text_float": function(
        "sp_text_float(given text)",
        "float8",
        f"""DECLARE t text := btrim(given, ' ');
        BEGIN
          IF lower(t) ~ '^([+-]?(inf|infinity)|nan)$' THEN RETURN t::float8; END IF;
          IF t !~ '^{_NUMBER}$' THEN RETURN NULL; END IF;
          RETURN t::float8;
        EXCEPTION WHEN numeric_value_out_of_range THEN
          IF abs(coalesce(pg_temp.sp_text_numeric(t), 10)) < 1 THEN RETURN 0; END IF;
          RETURN CASE WHEN t LIKE '-%' THEN '-inf'::float8 ELSE 'inf'::float8 END;
        END""",
    ),
    "sp_text_bool": function(
        "sp_text_bool(given text)",
        "boolean",
        "RETURN CASE lower(btrim(given, ' ')) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END;",
    ),
    "sp_text_date": function(
        "sp_text_date(given text)",
        "bigint",
        r"""DECLARE p text[] := regexp_match(btrim(given, ' '), '^([0-9]{4})-([0-9]{2})-([0-9]{2})$'); days bigint;
        BEGIN
          IF p IS NULL OR p[1] = '0000' OR p[2]::int NOT BETWEEN 1 AND 12 OR p[3]::int < 1 THEN RETURN NULL; END IF;
          days := pg_temp.sp_days(p[1]::bigint, p[2]::bigint, p[3]::bigint);
          RETURN CASE WHEN pg_temp.sp_day(days) = p[3]::int THEN days END;
        END""",
    ),
    "sp_text_time": function(
        "sp_text_time(given text)",
        "bigint",
        r"""DECLARE p text[] := regexp_match(btrim(given, ' '), '^([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}):([0-9]{2})'
            '(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)$');
          days bigint; h int; mi int; s int; zh int; zm int; total bigint;
        BEGIN
          IF p IS NULL THEN RETURN NULL; END IF;
          days := pg_temp.sp_text_date(p[1]); h := p[2]; mi := p[3]; s := coalesce(p[4], '0');
          zh := coalesce(p[7], '0'); zm := coalesce(p[8], '0');
          IF days IS NULL OR h > 23 OR mi > 59 OR s > 59 OR zh > 23 OR zm > 59 THEN RETURN NULL; END IF;
          total := days * 86400000000 + s * 1000000::bigint + rpad(coalesce(p[5], ''), 6, '0')::bigint
            + (h * 60 + mi - (zh * 60 + zm) * CASE WHEN p[6] = '-' THEN -1 ELSE 1 END) * 60000000::bigint;
          RETURN CASE WHEN total BETWEEN -62135596800000000 AND 253402300799999999 THEN total END;
        END""",
    ),
    "sp_date_text": function(
        "sp_date_text(days bigint)",
        "text",
        "RETURN lpad(pg_temp.sp_year(days)::text, 4, '0') || '-' || lpad(pg_temp.sp_month(days)::text, 2, '0')"
        " || '-' || lpad(pg_temp.sp_day(days)::text, 2, '0');",
    ),
    "sp_time_text": function(
        "sp_time_text(t bigint)",
        "text",
        """DECLARE
          s bigint := pg_temp.sp_floordiv(t, 1000000); f bigint := t - s * 1000000;
          d bigint := pg_temp.sp_floordiv(s, 86400);
        BEGIN
          s := s - d * 86400;
          RETURN pg_temp.sp_date_text(d) || 'T' || lpad((s / 3600)::text, 2, '0')
            || ':' || lpad((s / 60 % 60)::text, 2, '0') || ':' || lpad((s % 60)::text, 2, '0')
            || CASE WHEN f = 0 THEN '' ELSE '.' || lpad(f::text, 6, '0') END || 'Z';
        END""",
    ),
}

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
