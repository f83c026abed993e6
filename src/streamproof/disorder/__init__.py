"""Out-of-order streams: how disordered one is, one with exactly the disorder asked for, and playing it back.

An event is **out of order** if an event with a later time arrived before it; ties are in order. Its **lateness** is how
far the latest time so far lies ahead of its own. Its **delay** is its arrival time minus its event time, where arrival
is known; the two are never mixed up.
"""
