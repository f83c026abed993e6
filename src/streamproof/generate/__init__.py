"""Event streams from facets, as pure functions of a seed.

>>> from streamproof.generate import Facets, describe, generated
>>> describe(generated({"k": "string", "v": "int64"}, 1000, 7, Facets(disorder="out_of_order"))).late
100
"""

from streamproof.generate.describe import Figures, describe
from streamproof.generate.facets import Facets, Values, contradiction
from streamproof.generate.speculative import make_duplicates, make_speculative
from streamproof.generate.stream import generate, generated

__all__ = [
    "Facets",
    "Figures",
    "Values",
    "contradiction",
    "describe",
    "generate",
    "generated",
    "make_duplicates",
    "make_speculative",
]
