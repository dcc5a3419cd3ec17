"""The language of a question: too few words for a classifier, so only the most frequent words and the script decide."""

from __future__ import annotations

import re
import unicodedata

_WORDS = re.compile(r"[^\W\d_]+")

_FREQUENT = {
    "English": "a about an and any are as at be by can come did do does for from had has have her his how i if in "
    "is it its long many me my no not of on or our so than that the their this to was we were what when where which "
    "who whom whose why will with would you your",
    "German": "aber als am auf aus bei das dass dem den der des die du durch ein eine einem einen einer es für gibt "
    "hat haben ich ihr im in ins ist kann kein man mein mit nach nicht noch oder sich sie sind so soll um und uns "
    "unser unter viel viele vom von vor wann? war waren warum? was weil welche? welchem? welchen? welcher? welches? "
    "wem? wenn wer? werden weshalb? wessen? wie? wieso? wieviel? wir wird wo wofür? woher? wohin? womit? woran? "
    "worauf? wovon? wozu? wurde wurden zu zum zur zwischen über",
    "French": "au aux avec ce cette combien? comment dans des du elle en est et il je la le les leur mon ne nos "
    "notre nous on où par pas pour pourquoi? qu quand? que quel quelle? quelles? quels qui quoi sa ses son sont sur "
    "un une vous",
    "Spanish": "al como con cuál? cuáles? cuándo? cuántas? cuánto? cuántos? cómo? de del donde dónde? el en es está "
    "esta hay la las lo los mi no nos para por que quién? qué se son su sus un una y",
    "Italian": "al alla che chi come con cosa cui da dei del della delle di dove? e gli i il in la le lo nel nella "
    "non nostro per perché? più quale quali quando? quanti? quanto? si sono su un una è",
    "Portuguese": "ao as com como da das de do dos e em foi mais na nas no nos nosso não o onde? os para pela pelo "
    "por porque qual quais quando? quantos? quanto? que quem se seu são sua um uma é à",
    "Dutch": "aan bij dat de dit een en er gaan heeft hebben het hoe hoeveel? ik in is je kan met naar niet of om "
    "ons op over te tot van voor waar waarom? wanneer? wat we welk welke? wie wij worden wordt zijn",
}
"""Frequent words of each language. A mark shows words that begin questions and are not English: they count as two."""

_FREQUENT_WORDS = {language: frozenset(words.replace("?", "").split()) for language, words in _FREQUENT.items()}
_ASKING = {word[:-1] for words in _FREQUENT.values() for word in words.split() if word.endswith("?")}
_NAMES = (
    "al am au comment con da de den der des di die dos du e el en er es est et foi hat ins la le les lo los man met "
    "mi ne non nos o om os over per pour que se si son su sur tot um un una van war y"
)
_ALSO_ENGLISH = _FREQUENT_WORDS["English"].union(_NAMES.split())
"""English words and frequent parts of names and abbreviations: another language has a word besides these."""

MIN_WORDS = 2
"""Minimum frequent words of a language in a question. One of them may be a name or an English word."""


def other_language(question: str) -> str | None:
    """Return a name for the language of a question that is surely not English; None for any other question."""
    letters = [letter for letter in question if letter.isalpha()]
    others = [letter for letter in letters if not unicodedata.name(letter, "LATIN").startswith("LATIN")]
    if 2 * len(others) > len(letters):
        script = unicodedata.name(others[0]).partition(" ")[0].capitalize()
        return "Chinese or Japanese" if script == "Cjk" else script
    words = frozenset(_WORDS.findall(question.lower()))
    found = {language: words & frequent for language, frequent in _FREQUENT_WORDS.items()}
    counts = {language: len(frequent) + len(frequent & _ASKING) for language, frequent in found.items()}
    language = max(counts, key=lambda each: counts[each])  # the first of equal ones: English
    return language if counts[language] >= MIN_WORDS and found[language] - _ALSO_ENGLISH else None
