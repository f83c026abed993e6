"""PostgreSQL functions for dates, times and casts; each gives null where a value does not fit."""

from __future__ import annotations

from typing import Final

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
