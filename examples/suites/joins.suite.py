"""Joins over imperfect streams: what follows what, and what is alone."""

from streamproof.workbench import intent as I  # noqa: N812
from streamproof.workbench.suite import Suite

left, right = I.stream(), I.stream()
rough = I.events(disorder=I.one_of("out_of_order", "highly"), duration=I.any, overlap="high", speculative=True)

SUITE = Suite(
    "joins",
    (
        left.join(right).on(I.expr(left) == I.expr(right)).over(rough).called("equi-join"),
        left.without(right).over(rough).called("anti-join"),
        left.group_apply(lambda group: group.followed_by(group)).over(rough).called("followed-in-groups"),
    ),
    cases=120,
    about=__doc__,
)
