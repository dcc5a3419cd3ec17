"""Titles that say nothing."""

from __future__ import annotations

import pytest

from likewise.readers.extracted_titles import says_nothing


@pytest.mark.parametrize(
    "generic",
    [
        *("Word Document", "Microsoft Word", "Microsoft Word Document", "New Microsoft Word Document", "Document1"),
        *("Untitled spreadsheet", "Untitled", "untitled-2", "Untitled document", "Unbenannt 1", "Document sans titre"),
        *("PowerPoint Presentation", "PowerPoint-Präsentation", "Presentation1", "Slide 1", "Sheet1", "Book1.xlsx"),
        *("Title", "Click to edit Master title style", "None", "...", "-"),
        *("200.01", "1,250.00", "-3.5 %", "$ 12.50", "1.2.3", "20 000,00 €"),
        *("0:0:0.0 --> 0:0:1.510", "00:00:01,000 --> 00:00:04,000", "00:12.3 --> 00:15", "12:30:05", "01:02:03.250"),
        *("Printed Name: Jane Doe", "Name: Jane Doe", "Applicant's signature:", "Date: 12 May 2024", "Fax: (030) 1234"),
        *("Vorname: Anna", "Nom : Durand", "E-mail: jane@example.org", "Company Name: Example Ltd."),
    ],
)
def test_titles_that_say_nothing(generic: str) -> None:
    assert says_nothing(generic)


@pytest.mark.parametrize(
    "real",
    [
        "Word order in German",
        "Documents of 1902",
        "The Slide",
        "Untitled paintings",
        "Sheet music",
        "C",
        "Excel VBA",
        *(
            "1984",
            "2001",
            "300",
            "2001: A Space Odyssey",
            "3.11 Release Notes",
            "11/22/63",
            "2024-05-12",
            "1.000 Fragen",
        ),
        *("4.48 Psychosis", "10. Conclusions", "1Q84", "90210", "24:00 Stunden", "12:01", "Time: 12:30:05 to midnight"),
        *("Printed circuit boards: a history", "Printed Names in Books", "Say Her Name: A Memoir", "Names: A Study"),
        *(
            "Telephone: The First Hundred Years",
            "E-mail: A Guide",
            "Date: A Fruit and Its Trade",
            "First Person: Plays",
        ),
        *("Signature Dishes: 40 Recipes", "The Name: Poems", "The Arrow --> And How to Draw It", "Fax Machines: 1990"),
    ],
)
def test_titles_that_say_something(real: str) -> None:
    assert not says_nothing(real)
