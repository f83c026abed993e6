"""Pairs of earthquakes in the same box of about 100 km whose hour-long lifetimes overlap.

streamproof run examples.neighbours:pairs --input quakes=examples/earthquakes.csv --map start=time,duration=1h,unit=ms
"""

import streamproof as sp

boxed = sp.source("quakes").select(
    "id",
    "mag",
    north="cast(floor(latitude / 0.9) as int64)",
    east="cast(floor(longitude / 0.9) as int64)",
)
pairs = boxed.multicast(
    lambda quakes: quakes.join(
        quakes,
        on="l.north = r.north and l.east = r.east and l.id < r.id",
        select={"first": "l.id", "second": "r.id", "stronger": "greatest(l.mag, r.mag)"},
    )
)
