"""What is shown of a passage: nothing that stands above it."""

from __future__ import annotations

import pytest

from search.hits.shown import shown_ranges

HEADER = "From: Ada <ada@example.org>\nTo: bo@example.org\nDate: Fri, 1 Mar 2024 09:12:00 +0100\n"
INNER = "Subject: Seeds\nFrom: Bo <bo@example.org>\n"


@pytest.mark.parametrize(
    ("text", "format_", "title", "heading", "shown"),
    [
        ("# The *sky*\n\n## Night\n\nNight falls", "markdown", "The sky", "The sky > Night", "Night falls"),
        ("[The sky](https://example.org)\n\nNight falls", "markdown", "The sky", "", "Night falls"),
        ("=====\nNight\n=====\nstars", "rst", "", "Night", "stars"),
        ("Night\n=====\nstars", None, "night", "", "stars"),
        ("\n# Night\n---\n\n```\ncode\n```\n", "markdown", "Night", "", "```\ncode\n```\n"),
        ("```\ncode\n```\n", "markdown", "Night", "", "```\ncode\n```\n"),
        ("Night", "text", "Night", "", "Night"),
        ("Nights are long", "text", "Night", "", "Nights are long"),
        ("Stars\n\nNight\n\nfalls", "text", "Night", "", "Stars\n\nNight\n\nfalls"),
        ("id: P1\nname: lamp\nprice: 2", "csv", "P1", "", "name: lamp\nprice: 2"),
        ("name: lamp\nprice: 2", "csv", "lamp", "", "price: 2"),
        ("A lamp\nis bright", "jsonl", "A lamp", "", "is bright"),
        ("note: Night\nstars", "text", "Night", "", "note: Night\nstars"),
        ("PEP: 8\nTitle: Style\nAuthor: Ada,\n  Bo\n\nWhy\n===\n\nIt helps.", "rst", "Style", "Why", "It helps."),
        ("Note: it\nhelps.\n\nTitle: none", "rst", "Style", "", "Note: it\nhelps.\n\nTitle: none"),
        ("PEP: 8\nTitle: Style\nType:", "rst", "Style", "", "PEP: 8\nTitle: Style\nType:"),
        (f"{HEADER}\nOrder beans.", "mbox", "Re: Seeds", "", "\nOrder beans."),
        (f"{HEADER}\nFYI\n\n{INNER}\nOrder beans.", "eml", "Fwd", "", "\nFYI\n\n\nOrder beans."),
        (f"{INNER}\nOrder beans.", "maildir", "Fwd", "Fwd > Seeds", "\nOrder beans."),
        (f"{HEADER}\nSeeds", "eml", "Seeds", "", "\nSeeds"),
        (HEADER, "eml", "Seeds", "", HEADER),
        (f"{HEADER}\nOrder beans.", "text", "Seeds", "", f"{HEADER}\nOrder beans."),
        ("Date: Friday\nPlace: room 12", "eml", "Seeds", "", "Date: Friday\nPlace: room 12"),
    ],
)
def test_a_passage_does_not_say_again_what_stands_above_it(
    text: str, format_: str | None, title: str, heading: str, shown: str
) -> None:
    assert "".join(text[start:end] for start, end in shown_ranges(text, format_, title, heading)) == shown
