"""`cached_property` for classes that keep a contract: pyright takes nothing but a property for one of a protocol."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from builtins import property as cached_property
else:
    from functools import cached_property

__all__ = ["cached_property"]
