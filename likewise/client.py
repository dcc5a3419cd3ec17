"""`Client`: an index that `likewise serve` serves. Extra `client`."""

from search.client import Client as Client
