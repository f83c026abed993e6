"""The Priority Order List: which flow is next, earliest deadline first."""

from __future__ import annotations

from heapq import heappop, heappush


class PriorityOrderList:
    """Flows by the deadline of their next work. A flow has one place; a new deadline replaces the old one.

    >>> order = PriorityOrderList()
    >>> order.put(0, 30.0); order.put(1, 20.0); order.put(1, 40.0)
    >>> order.first(), len(order)
    (0, 2)
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int]] = []  # with places that were given up since
        self._keys: dict[int, float] = {}  # the places that hold

    def put(self, flow: int, deadline: float) -> None:
        """Give a flow its place."""
        if self._keys.get(flow) != deadline:
            self._keys[flow] = deadline
            heappush(self._heap, (deadline, flow))

    def drop(self, flow: int) -> None:
        """A flow has nothing to do any more."""
        self._keys.pop(flow, None)

    def first(self) -> int | None:
        """The flow whose work falls due first."""
        while self._heap and self._keys.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][1] if self._heap else None

    def __len__(self) -> int:
        return len(self._keys)
