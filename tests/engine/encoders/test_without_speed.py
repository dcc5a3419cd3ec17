"""Without the part `speed` torch gives equal vectors, nothing is compiled, and OpenVINO is refused in one line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from cross_encoder_folders import PAIRS, scorer_folder
from opened import store_of

from indexer import Document, Index, doors, load_encoder
from indexer.encoders import cross_encoder, load
from indexer.encoders.openvino.encoder import CompiledEncoder
from indexer.encoders.torch import cross_encoder as cross_encoders
from indexer.encoders.torch.automodel import AutoModel
from indexer.encoders.torch.encoder import TorchEncoder
from indexer.errors import BadInput
from search import Searcher

NEEDS = r"^{} needs a part of likewise that is not installed \(speed\): pip install likewise$"


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """No test takes a model that another one has loaded, with or without the part."""
    for loaded in (load._transformer, cross_encoders._load):
        loaded.cache_clear()
    yield
    for loaded in (load._transformer, cross_encoders._load):
        loaded.cache_clear()


@pytest.fixture
def take_away(monkeypatch: pytest.MonkeyPatch, register: Callable[..., None]) -> Callable[[], None]:
    """Takes the part away until the end of the test, and all encoders that were loaded."""

    def take() -> None:
        parts = {name: place for name, place in doors.TABLE["parts"].items() if name != "speed"}
        monkeypatch.setattr(doors, "TABLE", {**doors.TABLE, "parts": parts})
        assert doors.find("parts", "speed") is None
        load._transformer.cache_clear()
        cross_encoders._load.cache_clear()
        register(alone=True)

    return take


@pytest.fixture
def shell(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Runs a command line in this process with the models that it names: exit code, output, errors."""
    from likewise.shell import main

    monkeypatch.delenv("LIKEWISE_INDEX", raising=False)
    monkeypatch.setattr("likewise.shell.terminal.progress.LOOK_S", 3600.0)  # no lines about the time that a test takes

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        said = capfd.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


@pytest.mark.needs("speed")
@pytest.mark.parametrize("kind", ["bert", "roberta", "distilbert", "mpnet"])
@pytest.mark.parametrize("recipe", ["", ":mean@-2", ":cls"])
def test_torch_gives_equal_vectors(
    kind: str, recipe: str, tiny: Callable[[str], Path], sentences: list[str], take_away: Callable[[], None]
) -> None:
    from likewise.speed.native import Native

    quick = load_encoder(f"{tiny(kind)}{recipe}", precision="float32")
    assert isinstance(quick, TorchEncoder)
    assert isinstance(quick.transformer, Native)
    wanted = {role: quick.encode(sentences, role) for role in ("query", "document")}
    take_away()
    plain = load_encoder(f"{tiny(kind)}{recipe}", precision="float32")
    assert isinstance(plain, TorchEncoder)
    assert isinstance(plain.transformer, AutoModel)
    assert plain.recipe == quick.recipe
    for role, vectors in wanted.items():
        assert (plain.encode(sentences, role) * vectors).sum(axis=1).min() >= 0.9995


def test_the_default_model_gives_equal_vectors(sentences: list[str], take_away: Callable[[], None]) -> None:
    wanted = load_encoder("all-MiniLM-L6-v2").encode(sentences)
    take_away()
    plain = load_encoder("all-MiniLM-L6-v2")
    assert isinstance(plain, TorchEncoder)
    assert (isinstance(plain.transformer, AutoModel), plain.alternative) == (True, None)
    assert (plain.encode(sentences) * wanted).sum(axis=1).min() >= 0.9995


def test_a_cross_encoder_gives_equal_scores(tmp_path: Path, take_away: Callable[[], None]) -> None:
    folder = str(scorer_folder("bert", tmp_path / "model"))
    question, texts = PAIRS[0][0], [text for _, text in PAIRS]
    wanted = cross_encoder(folder)(question, texts)
    take_away()
    assert cross_encoder(folder)(question, texts) == pytest.approx(wanted, abs=1e-5)


def test_openvino_needs_the_part(
    tiny: Callable[[str], Path], tmp_path: Path, take_away: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    onnx = tmp_path / "model"
    (onnx / "onnx").mkdir(parents=True)
    for name in ("config.json", "tokenizer.json"):
        (onnx / name).write_bytes((tiny("bert") / name).read_bytes())
    (onnx / "onnx" / "model.onnx").write_bytes(b"a graph")
    take_away()
    with pytest.raises(BadInput, match=NEEDS.format("runtime openvino")):
        load_encoder(tiny("bert"), runtime="openvino")
    with pytest.raises(BadInput, match=NEEDS.format(f"model '{onnx}', which has only ONNX files,")):
        load_encoder(onnx)
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvino")
    with pytest.raises(BadInput, match=NEEDS.format("LIKEWISE_RUNTIME=openvino")):
        load_encoder(tiny("bert"))
    monkeypatch.setenv("LIKEWISE_RUNTIME", "openvion")
    with pytest.raises(BadInput, match="LIKEWISE_RUNTIME is 'openvion'"):
        load_encoder(tiny("bert"))


@pytest.mark.slow
@pytest.mark.needs("shell")
def test_an_index_is_not_compiled_until_the_part_is_there(
    tiny: Callable[[str], Path],
    tmp_path: Path,
    shell: Callable[..., tuple[int, str, str]],
    register: Callable[..., None],
) -> None:
    (tmp_path / "a.txt").write_text("Two dogs run through the snow.")
    address, index = tmp_path / "x.index", ("index", tmp_path / "x.index", tmp_path / "a.txt", "--json")
    register(alone=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doors, "TABLE", {**doors.TABLE, "parts": {}})
        code, out, err = shell(*index, "--model", f"{tiny('bert')}:mean", "--precision", "float32")
        assert (code, err, json.loads(out.splitlines()[-1])["notes"]) == (0, "", [])
        assert json.loads(shell(*index)[1].splitlines()[-1])["unchanged"] == 1
        with Searcher(address) as searcher, Index.open(address) as opened:
            assert [hit.uri for hit in searcher.search("dogs")] == [str(tmp_path / "a.txt")]
            assert (store_of(opened).artifacts().exists(), opened.settings.uncompiled) == (False, "")
            with pytest.raises(BadInput, match=NEEDS.format("compiling an encoder")):
                opened.compile()
            assert opened.check(repair=True).ok
        assert "torch: the part of likewise that uses others is not installed (speed)" in shell("doctor", address)[1]
    register(alone=True)
    assert json.loads(shell(*index)[1].splitlines()[-1])["unchanged"] == 1
    with Index.open(address) as opened:
        assert store_of(opened).artifacts().exists() or "it will run on torch" in opened.settings.uncompiled


@pytest.mark.slow
@pytest.mark.needs("speed")
def test_a_compiled_question_is_answered_and_a_damaged_one_is_reported(
    tiny: Callable[[str], Path], tmp_path: Path, take_away: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.create(tmp_path / "x.index", f"{tiny('bert')}:mean", precision="float32") as index:
        index.add([Document("a", "a bank"), Document("b", "two dogs")])
        index.compile()
        graph = store_of(index).artifacts() / "encoder.bin"
    take_away()
    encoded: list[int] = []
    encode = CompiledEncoder.encode

    def counted(self: CompiledEncoder, texts: list[str], *options: object, **named: object) -> np.ndarray:
        encoded.append(len(texts))
        return encode(self, texts, *options, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(CompiledEncoder, "encode", counted)
    with Searcher(tmp_path / "x.index") as searcher:
        assert {hit.uri for hit in searcher.search("dogs")} == {"a", "b"}
    assert encoded == [1]
    graph.write_bytes(graph.read_bytes()[:-1])
    with Index.open(tmp_path / "x.index") as index:
        (problem,) = index.check(repair=True).problems
    assert "encoder.bin" in problem
    assert "this needs a part of likewise that is not installed (speed): pip install likewise" in problem
