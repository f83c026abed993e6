"""SQL for plain temporal queries: windows, joins of lifetimes, unions, rankings, modules.

>>> plan = loads("SELECT k, count(*) AS n FROM S WHERE v > 3 GROUP BY k, TUMBLING(10 s)")
>>> print(dumps(plan))
SELECT k, count(*) AS n FROM S WHERE v > 3 GROUP BY k, TUMBLING('10 s')

sqlglot parses, and then every part is admitted by name or refused.
"""

from __future__ import annotations

from streamproof.language.sql.printer import dumps
from streamproof.language.sql.reader import loads, loads_all

__all__ = ["dumps", "loads", "loads_all", "suffix"]

suffix = ".sql"
