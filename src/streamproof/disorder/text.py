"""An analysis as text: its figures for a terminal, and advice in plain words with the line to paste."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamproof.disorder.units import shown, spark_interval


def text_of(figures: Mapping[str, Any]) -> str:
    """All figures, the most important first."""
    return "\n".join(_lines(figures))


def _lines(f: Mapping[str, Any]) -> Iterator[str]:
    unit = f["unit"]
    yield f"events         {f['events']:,}" + (f"   ({f['rejected']:,} rejected)" if f["rejected"] else "")
    yield f"out of order   {f['out_of_order']:,}   ({f['factor']:.4g} %)"
    rate = f["frequency"]["per_second"]
    yield f"frequency      {rate:,.4g} per second" if rate else "frequency      all at one time"
    yield f"runs           {f['runs']:,}"
    for name in ("lateness", "delay"):
        if f.get(name) and f[name]["count"]:
            parts = ("min", "mean", "p50", "p90", "p99", "p999", "max")
            yield f"{name:<14} " + "   ".join(f"{part} {shown(f[name][part], unit)}" for part in parts)
    counts = {name: f[name] for name in ("nulls", "negatives", "duplicates") if f[name]}
    if counts:
        yield "also           " + ", ".join(f"{count:,} {name}" for name, count in counts.items())
    if f["out_of_order"]:
        yield from _curve(f)
        yield from _blame(f)
    yield from _extras(f)
    yield ""
    yield from f["advice"]


def _curve(f: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "watermark delay   events lost"
    for delay, percent in _telling(f["drop_curve"]):
        yield f"{shown(delay, f['unit']):>15}   {percent:10.4f} %"
    yield ""
    yield "to lose at most   delay needed      rows held"
    for name, delay in f["delay_for_loss"].items():
        word = "nothing" if name == "0" else name.replace("%", " %")
        yield f"{word:>15}   {shown(delay, f['unit']):<15} {f['rows_held'][name]:>11,}"


def _telling(curve: list[list[float]]) -> Iterator[tuple[float, float]]:
    """The points that differ from the ones before them by more than a rounding; the last one always."""
    before = None
    for delay, percent in curve:
        if before is None or abs(percent - before) > max(0.02 * before, 1e-4) or [delay, percent] == curve[-1]:
            yield delay, percent
            before = percent


def _blame(f: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield "made late         by the event at"
    for event in f["blame"][:5]:
        ahead = f", {shown(event['ahead'], f['unit'])} ahead" if event["ahead"] else ""
        yield f"{event['made_late']:>9,}         {event['moment']} ({event['row']}{ahead})"


def _extras(f: Mapping[str, Any]) -> Iterator[str]:
    if "keys" in f:
        yield ""
        yield f"{f['keys']['count']:,} keys; those with most late events:"
        for row in f["keys"]["most_late"]:
            longest = shown(row["max_lateness"], f["unit"])
            yield f"  {row['key']}: {row['out_of_order']:,} of {row['events']:,}, up to {longest}"
    if "order" in f:
        yield ""
        for name, value in f["order"].items():
            number = f"{value:.6f}" if isinstance(value, float) else "–" if value is None else f"{value:,}"
            yield f"{name:<17} {number}"
    if "spark" in f:
        yield ""
        yield spark_line(f)


def spark_line(f: Mapping[str, Any]) -> str:
    """What the simulation of Spark's own rule found, in one sentence."""
    s, unit = f["spark"], f["unit"]
    window = f", windows of {shown(s['window'], unit)}" if s["window"] else ""
    hit = f" from {s['windows_hit']:,} windows" if s["window"] else ""
    return (
        f"Spark, {s['batches']:,} micro-batches of {s['batch_rows']:,} rows, delay {shown(s['delay'], unit)}{window}: "
        f"{s['dropped']:,} dropped ({s['percent']:.4g} %){hit}"
    )


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
