"""Finding rows, fields and times in the bytes of a file, compiled: one pass, nothing is decoded or copied.

A time is a whole number, or an instant like ``2024-05-01T12:00:00.123+02:00`` (also with a blank instead of the T, a
comma before the fraction, a date alone). What is neither is left to the slow and explaining way.
"""

from __future__ import annotations

import numpy as np
from numba import njit

# What became of a row; new words go to the end: compiled loops of other files remember the numbers.
GOOD, BLANK, FIELDS, OPEN_QUOTE, NO_TIME, ODD_TIME, TOO_FINE, NO_OBJECT, AFTER_QUOTE = range(9)
ZONED, NAIVE, NUMBER = range(3)  # what kind of time it has
_LF, _CR, _QUOTE = 10, 13, 34
_LONGEST = 4_000_000_000_000_000_000  # a number above it would overflow with its next digit


@njit(cache=True)
def row_ends(data, start, end, separator):  # type: ignore[no-untyped-def]
    """Where rows end, behind their line break. With a separator, breaks inside quoted fields do not count."""
    out = np.empty(np.sum(data[start:end] == _LF) + 1, np.int64)
    count, inside, fresh = 0, False, True  # within quotes; where a quote would open a field
    for i in range(start, end):
        byte = data[i]
        if separator and byte == _QUOTE and (inside or fresh):
            inside = not inside
            fresh = not inside  # a doubled quote opens again
            continue
        fresh = not inside and byte in (separator, _LF)
        if byte == _LF and not inside:
            out[count] = i + 1
            count += 1
    return out[:count]


@njit(cache=True)
def fields_of(data, starts, ends, separator, quote, wanted, expected):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """For each row what became of it, where its wanted fields start and end, without quotes, and how many it has."""
    n = len(starts)
    status, counts = np.zeros(n, np.uint8), np.zeros(n, np.int64)
    spans = np.zeros((2 * len(wanted), n), np.int64)
    for row in range(n):
        at, end = starts[row], _trimmed(data, starts[row], ends[row])
        if _is_blank(data, at, end):
            status[row] = BLANK
            continue
        number = 0
        while True:
            begin, stop, at, found = _field(data, at, end, separator, quote)
            if found != GOOD:
                status[row] = found
            for place in range(len(wanted)):
                if number == wanted[place]:
                    spans[2 * place, row], spans[2 * place + 1, row] = begin, stop
            number += 1
            if at >= end:
                break
            at += 1
        counts[row] = number
        if status[row] == GOOD and number != expected:
            status[row] = FIELDS
    return status, spans, counts


@njit(cache=True)
def _trimmed(data, at, end):  # type: ignore[no-untyped-def]
    while end > at and (data[end - 1] == _LF or data[end - 1] == _CR):
        end -= 1
    return end


@njit(cache=True)
def _is_blank(data, at, end):  # type: ignore[no-untyped-def]
    return _skipped(data, at, end) == end


@njit(cache=True)
def _skipped(data, at, end):  # type: ignore[no-untyped-def]
    """Behind blanks and tabs."""
    while at < end and data[at] in (32, 9):
        at += 1
    return at


@njit(cache=True)
def _field(data, at, end, separator, quote):  # type: ignore[no-untyped-def]
    """One field: where its text starts and stops, where the separator behind it stands, what its quotes say."""
    begin = at
    if not (quote and at < end and data[at] == _QUOTE):
        while at < end and data[at] != separator:
            at += 1
        return begin, at, at, GOOD
    at += 1
    found = OPEN_QUOTE
    while at < end:
        if data[at] == _QUOTE:
            if at + 1 < end and data[at + 1] == _QUOTE:
                at += 1
            else:
                found = GOOD
                break
        at += 1
    stop = at
    if found == GOOD and stop + 1 < end and data[stop + 1] != separator:
        found = AFTER_QUOTE
    while at < end and data[at] != separator:
        at += 1
    return begin + 1, stop, at, found


@njit(cache=True)
def members_of(data, starts, ends, names, name_ends):  # type: ignore[no-untyped-def]
    """For each line of JSON what became of it, and where the values of the wanted members of its object lie."""
    status = np.zeros(len(starts), np.uint8)
    spans = np.zeros((2 * len(name_ends), len(starts)), np.int64)
    for row in range(len(starts)):
        at, end = _skipped(data, starts[row], ends[row]), _trimmed(data, starts[row], ends[row])
        if at >= end:
            status[row] = BLANK
            continue
        closed = data[at] == 123
        at += 1
        while closed:
            number, value, stop, at = _member(data, at, end, names, name_ends)
            if at < 0:
                closed = False
            elif number >= 0:
                spans[2 * number, row], spans[2 * number + 1, row] = value, stop
            if at < 0 or data[at - 1] == 125:
                break
        if not closed or not _is_blank(data, at, end):
            status[row] = NO_OBJECT
    return status, spans


@njit(cache=True)
def _member(data, at, end, names, name_ends):  # type: ignore[no-untyped-def]
    """One member: which of the wanted names it has, where its value lies, and what is behind its comma or brace."""
    at = _skipped(data, at, end)
    if at < end and data[at] == 125:  # an empty object
        return -1, 0, 0, at + 1
    close = _string_end(data, at + 1, end) if at < end and data[at] == _QUOTE else end
    colon = _skipped(data, close + 1, end)
    if colon >= end or data[colon] != 58:
        return -1, 0, 0, -1
    number = _named(data, at + 1, close, names, name_ends)
    value = _skipped(data, colon + 1, end)
    stop = _value_end(data, value, end)
    behind = _skipped(data, stop, end)
    if stop == value or behind >= end or data[behind] not in (44, 125):
        return -1, 0, 0, -1
    if data[value] == _QUOTE:
        return number, value + 1, stop - 1, behind + 1
    if data[value] == 110:  # null has no text
        return -1, 0, 0, behind + 1
    return number, value, stop, behind + 1


@njit(cache=True)
def _value_end(data, at, end):  # type: ignore[no-untyped-def]
    """Behind a value: a string, a number or word, or whatever brackets enclose."""
    depth = 0
    while at < end:
        byte = data[at]
        if byte == _QUOTE:
            at = _string_end(data, at + 1, end)
            if depth == 0:
                return min(at + 1, end)
        elif byte in (123, 91):
            depth += 1
        elif depth == 0 and byte in (44, 125, 32, 9):
            return at
        elif byte in (125, 93):
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return end


@njit(cache=True)
def _string_end(data, at, end):  # type: ignore[no-untyped-def]
    while at < end and data[at] != _QUOTE:
        at += 2 if data[at] == 92 else 1
    return min(at, end)


@njit(cache=True)
def _named(data, at, stop, names, name_ends):  # type: ignore[no-untyped-def]
    """Which of the wanted names this is, or -1."""
    begin = 0
    for number in range(len(name_ends)):
        if name_ends[number] - begin == stop - at:
            same = True
            for i in range(stop - at):
                if data[at + i] != names[begin + i]:
                    same = False
                    break
            if same:
                return number
        begin = name_ends[number]
    return -1


@njit(cache=True)
def _digits(data, at, end, count):  # type: ignore[no-untyped-def]
    """A number of exactly ``count`` digits, or -1."""
    if at + count > end:
        return -1
    value = 0
    for i in range(at, at + count):
        digit = data[i] - 48
        if digit < 0 or digit > 9:
            return -1
        value = value * 10 + digit
    return value


@njit(cache=True)
def _days(year, month, day):  # type: ignore[no-untyped-def]
    """Days since 1970-01-01."""
    if month < 3:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    shifted = month - 3 if month > 2 else month + 9
    of_year = (153 * shifted + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


@njit(cache=True)
def _month_length(year, month):  # type: ignore[no-untyped-def]
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@njit(cache=True)
def _whole(data, at, end):  # type: ignore[no-untyped-def]
    """A whole number, perhaps with a sign and a fraction of zeros: (found, value)."""
    negative = data[at] == 45
    if data[at] == 45 or data[at] == 43:
        at += 1
    if at >= end:
        return ODD_TIME, 0
    value = 0
    first = at
    while at < end and 48 <= data[at] <= 57:
        if value > _LONGEST // 10:
            return ODD_TIME, 0
        value = value * 10 + (data[at] - 48)
        at += 1
    if at == first:
        return ODD_TIME, 0
    if at < end and data[at] == 46:
        at += 1
        while at < end and data[at] == 48:
            at += 1
        if at < end and 48 <= data[at] <= 57:
            return TOO_FINE, 0
    return (GOOD if at == end else ODD_TIME), (-value if negative else value)


@njit(cache=True)
def _instant(data, at, end, per_second):  # type: ignore[no-untyped-def]
    """An ISO instant: (found, ticks, kind)."""
    year, month, day = _digits(data, at, end, 4), _digits(data, at + 5, end, 2), _digits(data, at + 8, end, 2)
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= _month_length(year, month):
        return ODD_TIME, 0, NAIVE
    seconds, fraction, kind = _days(year, month, day) * 86_400, 0, NAIVE
    at += 10
    if at < end:
        of_day, at = _clock(data, at, end)
        if of_day < 0:
            return ODD_TIME, 0, NAIVE
        found, fraction, at = _fraction(data, at, end, per_second)
        if found != GOOD:
            return found, 0, NAIVE
        kind, offset, at = _zone(data, at, end)
        if at != end:
            return ODD_TIME, 0, NAIVE
        seconds += of_day - offset
    if abs(seconds) > _LONGEST // per_second:
        return ODD_TIME, 0, NAIVE
    return GOOD, seconds * per_second + fraction, kind


@njit(cache=True)
def _clock(data, at, end):  # type: ignore[no-untyped-def]
    """Seconds of the day from ``T12:00`` or ``T12:00:00``, or -1; and what comes behind them."""
    hour, minute, second = _digits(data, at + 1, end, 2), _digits(data, at + 4, end, 2), 0
    if data[at] not in (84, 116, 32) or not 0 <= hour <= 23 or not 0 <= minute <= 59 or data[at + 3] != 58:
        return -1, at
    at += 6
    if at < end and data[at] == 58:
        second = _digits(data, at + 1, end, 2)
        at += 3
    return (hour * 3600 + minute * 60 + second if 0 <= second <= 59 else -1), at


@njit(cache=True)
def _fraction(data, at, end, per_second):  # type: ignore[no-untyped-def]
    """Ticks behind a point or a comma; too fine if they do not come out even."""
    if at >= end or data[at] not in (46, 44):
        return GOOD, 0, at
    at += 1
    ticks, unit, first = 0, per_second, at
    while at < end and 48 <= data[at] <= 57:
        digit = data[at] - 48
        if unit % 10:
            if digit:
                return TOO_FINE, 0, at
        else:
            unit //= 10
            ticks += digit * unit
        at += 1
    return (GOOD if at > first else ODD_TIME), ticks, at


@njit(cache=True)
def _zone(data, at, end):  # type: ignore[no-untyped-def]
    """``Z``, ``+02``, ``+0200`` or ``+02:00``: (kind, seconds ahead of UTC, what comes behind or -1)."""
    at = _skipped(data, at, end)
    if at == end:
        return NAIVE, 0, at
    if data[at] in (90, 122):
        return ZONED, 0, at + 1
    if data[at] not in (43, 45):
        return NAIVE, 0, -1
    sign = 1 if data[at] == 43 else -1
    hours, minutes = _digits(data, at + 1, end, 2), 0
    at += 3
    if at < end and data[at] == 58:
        at += 1
    if at < end:
        minutes = _digits(data, at, end, 2)
        at += 2
    if not 0 <= hours <= 18 or not 0 <= minutes <= 59:
        return NAIVE, 0, -1
    return ZONED, sign * (hours * 3600 + minutes * 60), at


@njit(cache=True)
def times_of(data, status, starts, ends, per_second):  # type: ignore[no-untyped-def]
    """The time of each good row in ticks, and of which kind it is; rows without one change their status."""
    ticks = np.zeros(len(starts), np.int64)
    kinds = np.full(len(starts), NUMBER, np.uint8)
    for row in range(len(starts)):
        if status[row] != GOOD:
            continue
        at, end = starts[row], ends[row]
        while at < end and (data[at] == 32 or data[at] == 9):
            at += 1
        while at < end and (data[end - 1] == 32 or data[end - 1] == 9):
            end -= 1
        if at >= end:
            status[row] = NO_TIME
        elif end - at >= 10 and data[at + 4] == 45 and data[at + 7] == 45:
            status[row], ticks[row], kinds[row] = _instant(data, at, end, per_second)
        else:
            status[row], ticks[row] = _whole(data, at, end)
    return ticks, kinds
