"""Accents of LaTeX: their letters are words."""

from __future__ import annotations

import pytest

from indexer.passages.cut import visible_text
from indexer.passages.markup import hidden_ranges
from indexer.stores.words.analysis import Analysis


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        (r"Schr\"odinger", "Schrodinger"),
        (r"Schr{\"o}dinger", "Schrodinger"),
        (r"Schr\"{o}dinger and P\'olya", "Schrodinger and Polya"),
        (r"{\'E}cole, caf{\'e}s", "Ecole, cafes"),
        (r"Stra{\ss}e, Stra\ss{}e, Stra\ss e, Ma\ss.", "Strasse, Strasse, Strasse, Mass."),
        (r"na\"{\i}ve, na\"\i ve, na{\"\i}ve", "naive, naive, naive"),
        (r"Fran\c{c}ois, Gar\c con, Ho\v{r}e, {\v S}kvor", "Francois, Garcon, Hore, Skvor"),
        (r"\O{}rsted, {\AA}ngstr{\"o}m, {\L}{\'o}d{\'z}, \oe uvre", "Orsted, Angstrom, Lodz, oeuvre"),
        (r"title = {{B}ayes and {G}{\"o}del}", "title = {Bayes and Godel}"),
        (
            r"\emph{ab} \begin{center} \o', $\alpha^2$ \textbf{A}b \url{x}",
            r"\emph{ab} \begin{center} o', $\alpha^2$ \textbf{A}b \url{x}",
        ),
    ],
)
def test_the_letter_of_an_accent_remains(source: str, shown: str) -> None:
    assert visible_text(source, "latex") == shown
    assert visible_text(source, "text") == source


def test_many_backslashes_and_braces_take_no_time() -> None:
    for piece in ("\\", "{", "{\\", '\\" ', "{A", "\\c "):
        assert hidden_ranges(piece * 40_000 + "a", "latex") is not None


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_a_search_by_words_finds_the_letter(language: str) -> None:
    analysis = Analysis(language)
    source = r"Schr{\"o}dinger, Stra{\ss}e, P\'olya, {\L}ukasiewicz, Erd\H{o}s"
    asked = analysis.words("Schrödinger Straße Pólya Łukasiewicz Erdős")
    written = analysis.words(visible_text(source, "latex"))
    stems_asked, stems_written = (set(analysis.stemmed.analyze(" ".join(words))) for words in (asked, written))
    assert len(stems_written) == 5
    assert stems_written <= stems_asked
