"""The names of indexes that are asked or served together."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from indexer.errors import BadInput
from indexer.stores.addresses.open import is_uri, without_passwords

_PARAMETER = re.compile(r"[?&]index=([^&#]*)")
_DEFAULT_NAME = "default"
_RENAMED = re.compile(r"(\w[\w.-]*)=(.+)", re.DOTALL)
_UNNAMEABLE = re.compile(r"[^\w.-]+")


def addresses_by_name(arguments: Sequence[str]) -> dict[str, str]:
    """Return name and address of indexes as a command line names them: `FOLDER`, `DSN` or `NAME=` either of them.

    A folder gives its name without `.index`, a DSN that of its parameter `index`.

    Raises:
        BadInput: two indexes have the same name.
    """
    named: dict[str, str] = {}
    for argument in arguments:
        renamed = _RENAMED.fullmatch(argument)
        if renamed and not Path(argument).exists():
            name, address = renamed[1], os.path.expanduser(renamed[2])  # noqa: PTH111 - not every shell expands it here
        else:
            name, address = name_of(argument), argument
        if name in named:
            raise BadInput(
                f"{without_passwords(named[name])} and {without_passwords(address)} are both named {name!r}: give one "
                f"of them another name, as in other={without_passwords(address)}"
            )
        named[name] = address
    return named


def name_of(address: str) -> str:
    """Return the name of an index: its folder without `.index`, or the parameter `index` of its DSN."""
    if is_uri(address):
        name = name_in(address)
    else:
        folder, name = os.path.split(os.path.abspath(address))  # noqa: PTH100 - of "..", the folder's own name
        if name == ".likewise":  # the default index of a folder
            name = os.path.basename(folder)  # noqa: PTH119
        name = name.removesuffix(".index")
    return _UNNAMEABLE.sub("-", name).strip("-") or "index"


def name_in(uri: str) -> str:
    """Return the name of the index that the URI of a database gives."""
    names = _PARAMETER.findall(uri)
    return unquote(names[-1]) if names else _DEFAULT_NAME
