"""Questions in another language than the model reads."""

from __future__ import annotations

import pytest

from likewise.service.question_language import other_language


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("wie funktioniert die Impfung", "German"),
        ("comment la lumière est absorbée par les feuilles", "French"),
        ("Wann ziehen wir um?", "German"),
        ("Welches Prinzip wurde verletzt", "German"),
        ("quand déménageons-nous", "French"),
        ("quando ci trasferiamo", "Italian"),
        ("wanneer verhuizen we", "Dutch"),
        ("UN security council votes on Syria", None),
        ("13 children die in a fire", None),
        ("war in Vietnam", None),
        ("cómo se reproducen las plantas", "Spanish"),
        ("كيف تعمل اللقاحات", "Arabic"),
        ("月の満ち欠け", "Chinese or Japanese"),
        ("how does the immune system work", None),
        ("die casting of aluminium", None),
        ("la niña", None),
        ("error 0x80070057", None),
        ("", None),
    ],
)
def test_only_what_is_surely_another_language_is_named(question: str, language: str | None) -> None:
    assert other_language(question) == language
