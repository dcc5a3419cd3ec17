"""The tokenizer.json that cuts passages for a model behind an endpoint."""

from __future__ import annotations

from pathlib import Path

from indexer.encoders.recipes.locate import DEFAULT_MODEL, HUB_SECONDS, PUBLISHER, find_model
from indexer.errors import Message, ModelError


def find_tokenizer(name: str) -> Path:
    """Return a tokenizer.json. If the model is on the hub, only this file is fetched.

    Args:
        name: name of a model, of a folder that holds the file, or of the file itself.

    Raises:
        ModelError: there is none.
    """
    path = Path(name).expanduser()
    if path.is_file():
        return path
    if path.is_dir() or name.removeprefix(PUBLISHER) == DEFAULT_MODEL:
        folder = path if path.is_dir() else find_model(name)
        if not (folder / "tokenizer.json").is_file():
            raise ModelError(f"{folder} holds no tokenizer.json: name the folder of the tokenizer, or its file")
        return folder / "tokenizer.json"
    if path.is_absolute() or name.startswith((".", "~")) or len(path.parts) > 2:
        raise ModelError(f"tokenizer {name!r} does not exist: check the path")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    last: Exception | None = None
    for candidate in [name] if "/" in name else [f"{PUBLISHER}{name}", name]:
        try:
            return Path(hf_hub_download(candidate, "tokenizer.json", etag_timeout=HUB_SECONDS))
        except (HFValidationError, LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
            last = error
    raise ModelError(
        Message(
            f"tokenizer {name!r} is not on this machine and the hub has none or cannot be reached: give the path of "
            "its tokenizer.json",
            ", or leave --tokenizer out",
        )
    ) from last
