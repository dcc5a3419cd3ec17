"""PDF with pypdfium2: one section per page, with its number."""

from __future__ import annotations

import re

import pypdfium2

from indexer.sources.content import Assembly, Content, Skip, Unreadable

_HYPHEN = re.compile("[\x02\ufffe](?:\r?\n)?")  # PDFium's marks for a word that is broken at a line's end


def read(path: str) -> Content:
    """Read a file. Title and author are the document's properties."""
    try:
        document = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower() or "security" in str(error).lower():
            raise Unreadable("encrypted: save it without a password") from error
        raise Unreadable(f"damaged: not a readable PDF ({error})") from error
    assembly = Assembly()
    for number in range(len(document)):
        page = document[number]
        text_page = page.get_textpage()
        assembly.section(page=number + 1)
        assembly.add(_HYPHEN.sub("", text_page.get_text_bounded()))
        text_page.close()
        page.close()
    properties = document.get_metadata_dict(skip_empty=True)
    metadata: dict[str, str | int] = {"pages": len(document)}
    if author := properties.get("Author"):
        metadata["author"] = author
    document.close()
    content = assembly.content(properties.get("Title", "").strip(), metadata)
    if not content.text:
        raise Skip("no text in its pages (scanned?): run it through OCR first")
    return content
