"""The sums of the last window that each group came to, for the next one: it has most of its panes in common.

>>> slides = Slides(width=2, worth=True)
>>> slides.admit(3); slides.at[1] = 7, 0
>>> slides.forget(8); slides.at[1, REACHED] == FOREVER
np.True_
"""

from __future__ import annotations

import numpy as np

from streamproof.events.time import FOREVER
from streamproof.kernels.windows.sliding import REACHED


class Slides:
    """Per group a window, and its sums. Whatever is not known here can be had from the panes."""

    def __init__(self, width: int, *, worth: bool) -> None:
        """``worth`` says whether windows overlap enough; if not, nothing is ever kept."""
        self._worth = worth
        self.at = np.empty((0, 2), np.int64)  # by group: the window, and how many starts had left it
        self.sums = np.empty((0 if worth else 1, width), np.int64)  # one row for all, where nothing is kept

    def admit(self, groups: int) -> None:
        """Make room for so many groups."""
        known = len(self.at)
        if self._worth and groups > known:
            self.at = np.concatenate([self.at, np.full((max(groups - known, known, 64), 2), FOREVER)])
            self.sums = np.concatenate([self.sums, np.zeros((len(self.at) - known, self.sums.shape[1]), np.int64)])

    def forget(self, before: int) -> None:
        """Forget the sums of windows before one, whose panes are gone."""
        self.at[self.at[:, REACHED] < before, REACHED] = FOREVER
