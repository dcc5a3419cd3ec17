"""`Client`: an index that `likewise serve` serves. Extra `client`."""

from likewise.client.client import Client as Client
