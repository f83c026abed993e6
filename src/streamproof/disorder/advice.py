"""Advice in plain words: the line to paste, what it loses, what it costs, and whether a clock is the culprit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof.disorder.units import shown, spark_interval


def advice_for(figures: Mapping[str, Any]) -> list[str]:
    """A few sentences about a stream."""
    if not figures["out_of_order"]:
        return [
            f"All {figures['events']:,} events arrive in order; no watermark delay is needed: {_line(figures, 0)}",
            *_remarks(figures),
        ]
    unit, lateness = figures["unit"], figures["lateness"]
    found = [
        f"{figures['factor']:.2f} % of {figures['events']:,} events arrive out of order, half of these by more than "
        f"{shown(lateness['p50'], unit)}, the latest by {shown(lateness['max'], unit)}."
    ]
    if figures["runs"] > 0.9 * figures["events"] and figures["events"] > 10:
        found.append(
            "Nearly every row is older than the one before it: the file stands newest first. If rows did not arrive in "
            "this order, name the column that says when they did (--arrival)."
        )
    elif figures["without_culprits"]:
        found += _clock(figures)
    delays = figures["delay_for_loss"]
    some = delays["0.1%"]
    found.append(
        f"To lose at most 0.1 % of the events, wait {shown(some, unit)}: {_line(figures, some)}. "
        f"A job that keeps rows for that long holds about {figures['rows_held']['0.1%']:,}."
    )
    found.append(
        f"Losing up to 1 % takes {shown(delays['1%'], unit)} and about {figures['rows_held']['1%']:,} rows; "
        f"losing nothing takes {shown(delays['0'], unit)} and about {figures['rows_held']['0']:,}."
    )
    if some and delays["0"] > 100 * some:
        found.append(
            f"A few events are far later than all others: the last 0.1 % stretch the delay from {shown(some, unit)} to "
            f"{shown(delays['0'], unit)}. Send these to a side output instead of waiting for them."
        )
    return found + _remarks(figures)


def _line(figures: Mapping[str, Any], delay: int) -> str:
    return f'`.withWatermark("{figures["event_time"]}", "{spark_interval(delay, figures["unit"])}")`'


def _clock(figures: Mapping[str, Any]) -> list[str]:
    clean, unit = figures["without_culprits"], figures["unit"]
    first = clean["left_out"][0]
    many = len(clean["left_out"])
    who = (
        f"The event at {first['moment']} ({first['row']})"
        if many == 1
        else f"{many} events, the first at {first['moment']},"
    )
    late = sum(event["made_late"] for event in clean["left_out"])
    return [
        f"A clock is the culprit, not the network: {who} ran {shown(first['ahead'], unit)} ahead of everything "
        f"before and made {late:,} others late. Without it {clean['factor']:.2f} % are out of order and "
        f"{shown(clean['delay_for_loss']['0.1%'], unit)} lose at most 0.1 %. Filter such events out; a longer "
        "watermark would not help."
    ]


def _remarks(figures: Mapping[str, Any]) -> list[str]:
    found = []
    if figures["negatives"]:
        found.append(
            f"{figures['negatives']:,} events arrive before their own event time: the two clocks disagree, so that "
            "delays are not to be trusted."
        )
    if figures["duplicates"]:
        found.append(
            f"{figures['duplicates']:,} rows repeat an earlier one to the letter: use "
            ".dropDuplicatesWithinWatermark() if the source sends at least once."
        )
    if figures["rejected"]:
        found.append(f"{figures['rejected']:,} rows could not be read; none of these figures counts them.")
    if figures["zone_assumed"]:
        found.append(f"{figures['zone_assumed']:,} times name no zone and were read as UTC, or as the zone given.")
    return found
