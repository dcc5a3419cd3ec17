"""The hosts that this user has named on this machine: questions, documents and the key are sent to no other endpoint.

A host is named by giving the address of an endpoint as a model to `likewise index`, `likewise migrate` or
`Index.create`. Opening an index never names one, because the index may have come from somebody else.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from indexer.encoders.machine.user_folders import configuration_folder
from indexer.errors import Message, ModelError, storage_error
from likewise.endpoints.endpoint_address import EndpointAddress

_FILE = "hosts.json"


def name_host(model: str) -> None:
    """Record that this user has named the host of a model's address.

    Raises:
        ModelError: the address, or the file of named hosts, cannot be read.
        StorageError: the file cannot be written.
    """
    host, path, hosts = EndpointAddress.parse(model).host, _path(), named_hosts()
    if host in hosts:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The mode of the draft is 0600: only this user may read the file.
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{_FILE}-", encoding="utf-8", delete=False) as draft:
            try:
                json.dump({"hosts": sorted({*hosts, host})}, draft, indent=1)
                draft.flush()
                os.fsync(draft.fileno())
                Path(draft.name).replace(path)
            finally:
                Path(draft.name).unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(
            f"{path} cannot be written ({error.strerror}): {host} is recorded there before it is asked; "
            "make the folder writable, or set XDG_CONFIG_HOME",
            error,
        ) from error


def require_named(address: EndpointAddress) -> None:
    """Raise ModelError unless this user has named the host of an address."""
    if address.host not in named_hosts():
        raise ModelError(
            Message(
                f"the model of this index is behind {address.host}, and nothing was sent there, because you have not "
                "named this host on this machine: if you trust it with your texts, name it once as the model of an "
                "index",
                f": likewise index INDEX SOURCE --model {address}",
            )
        )


def named_hosts() -> frozenset[str]:
    """Return the named hosts as scheme://host:port. Raises ModelError if their file cannot be read."""
    path = _path()
    try:
        hosts = json.loads(path.read_text(encoding="utf-8"))["hosts"]
        if not isinstance(hosts, list) or not all(isinstance(host, str) for host in hosts):
            raise ValueError("it is not a list of hosts")
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path}: the list of the hosts that you have named cannot be read ({error}): delete it and name them again"
        ) from error
    return frozenset(hosts)


def _path() -> Path:
    return configuration_folder() / _FILE
