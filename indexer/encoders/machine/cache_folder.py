"""The user's cache folder. All its content, such as compiled encoders and vectors, can be made again."""

from __future__ import annotations

from pathlib import Path

from platformdirs import user_cache_dir


def cache_folder() -> Path:
    """Return the cache folder of likewise for this user and platform. It may not exist yet."""
    return Path(user_cache_dir("likewise", appauthor=False))
