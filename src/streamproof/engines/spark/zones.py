"""Local times of a table as instants, in expressions of Spark, with the meaning of `events.files.times`.

Spark's own conversion says nothing of local times that come twice or never: it takes the earlier instant, or moves the
time on. Here each time is read by the clock of a day before and by that of a day after:

    ---- clock of before ----|  change of clocks  |---- clock of after ----
                      2:30 is shown by both: twice; by none of them: never
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from streamproof.engines.spark.failures import WorkerError
from streamproof.errors import InputError
from streamproof.events.files.times import FIX, Ambiguous, years_in
from streamproof.events.time import BEGINNING, FOREVER, Unit

if TYPE_CHECKING:
    from pyspark.sql import Column

_PLACE: Final = "TIME"
_LEAVE: Final = "mend such rows, or leave the column out: ColumnMapping(…, payload=[…])"


def instants(local: Column, zone: str, ambiguous: Ambiguous, name: str) -> Column:
    """A column of local times as instants. A time that cannot be decided ends the query with an error."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415  # what everybody calls it

    def converted(moment: Column, source: str, target: str) -> Column:
        return F.convert_timezone(F.lit(source), F.lit(target), moment)

    if zone == "UTC":
        return converted(local, "UTC", "UTC").cast("timestamp")
    day = F.expr("INTERVAL '1' DAY")
    before = converted(local - day, zone, "UTC") + day
    after = converted(local + day, zone, "UTC") - day
    shown = [converted(moment, "UTC", zone) == local for moment in (before, after)]
    if ambiguous == "refuse":
        never = _refused(local, name, f"never comes in {zone}")
        decided = F.when(shown[0] | shown[1], _refused(local, name, f"comes twice in {zone}")).otherwise(never)
    else:
        decided = (F.least if ambiguous == "earlier" else F.greatest)(before, after)
    clear = F.when(before == after, before).when(shown[0] & ~shown[1], before).when(shown[1] & ~shown[0], after)
    return F.when(local.isNotNull(), clear.otherwise(decided)).cast("timestamp")


def _refused(local: Column, name: str, why: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    text = _error_text(local, InputError(f"the local time {_PLACE} {why}", at=f'column "{name}"', fix=FIX))
    return F.raise_error(text).cast("timestamp_ntz")


def within_years(moments: Column, kind: str, name: str) -> Column:
    """A column of dates or timestamps. One that no calendar of ours names ends the query with an error."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    text = _error_text(
        moments, InputError(f"{_PLACE} is not within the years 1 to 9999", at=f'column "{name}"', fix=_LEAVE)
    )
    known = moments.isNull() | moments.between(F.lit(datetime.min).cast(kind), F.lit(datetime.max).cast(kind))
    return F.when(known, moments).otherwise(F.raise_error(text).cast(kind))


def dated(ticks: Column, unit: Unit, name: str) -> Column:
    """A column of numbers that are instants. One that no calendar names ends the query: its unit is another one."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    what = f"the time {_PLACE} is not within the years 1 to 9999: is {unit} its unit?"
    text = _error_text(ticks, InputError(what, at=f'column "{name}"', fix="say the unit that the numbers have"))
    low, high = years_in(unit)
    known = ticks.isNull() | ticks.between(low, high - 1) | (ticks >= FOREVER) | (ticks <= BEGINNING)
    return F.when(known, ticks).otherwise(F.raise_error(text).cast("bigint"))


def _error_text(value: Column, error: InputError) -> Column:
    """The text of an error that is about a value."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    start, _, end = str(WorkerError(error)).partition(_PLACE)
    return F.concat(F.lit(start), value.cast("string"), F.lit(end))
