"""An attribute that is computed when it is first read, for objects that threads share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class LazyProperty(Generic[T]):
    """`functools.cached_property` as it is since Python 3.12: without a lock.

    Before, it has one lock for all objects of a class: the first question to one index would wait for that to another
    one, and a child that was forked meanwhile would wait forever. Two threads may compute a value at once; it is equal.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        """Compute the attribute of an object by this function."""
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value = self._compute(instance)
        instance.__dict__[self._name] = value  # read instead of this object from now on
        return value
