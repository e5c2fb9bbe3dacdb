"""`cached_property` for classes that keep a contract: pyright takes nothing but a property for one of a protocol.

Without the lock that the one of Python 3.11 has: objects of a live row live a millisecond, and values are the same
whoever works them out.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from builtins import property as cached_property
else:
    from functools import cached_property as _locked

    class cached_property(_locked):
        """A value worked out when it is first asked for, and kept in the object."""

        def __get__(self, instance, owner=None):
            """The value; of the class the property itself."""
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


__all__ = ["cached_property"]
