"""No deadlines: the machines that run tests are shared, and a slow moment is not a bug."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("shared_machine", deadline=None)
settings.load_profile("shared_machine")
