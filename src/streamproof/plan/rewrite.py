"""placeholder"""
from streamproof.plan.check import Typed
