"""PDF files that tests write, object by object."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

HELVETICA = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"


def write(
    path: Path,
    *pages: str | tuple[str, Sequence[str]],
    root: str = "",
    more: Sequence[str] = (),
    font: str = HELVETICA,
) -> Path:
    """Write a PDF. Each page has a content stream, and maybe annotations, which are all in the form.

    Args:
        root: more members of the catalogue.
        more: objects from number 4 on.
        font: object number 3, the font F1.
    """
    objects = ["", "", font, *more]

    def add(body: str) -> int:
        objects.append(body)
        return len(objects)

    def stream(text: str, members: str = "") -> int:
        return add(f"<<{members}/Length {len(text)}>>stream\n{text}\nendstream")

    kids, fields = [], []
    resources = "/Resources<</Font<</F1 3 0 R>>/XObject<</Im1 4 0 R>>>>"
    for page in pages:
        text, annotated = (page, ()) if isinstance(page, str) else page
        numbers = []
        for annotation in annotated:
            drawn, _, body = annotation.rpartition("|")
            if drawn:
                appearance = stream(drawn, f"/Type/XObject/Subtype/Form/BBox[0 0 200 20]{resources}")
                body += f"/AP<</N {appearance} 0 R>>"
            numbers.append(add(f"<</Type/Annot{body}>>"))
        fields += [n for n, body in zip(numbers, annotated, strict=True) if "/Widget" in body]
        refs = " ".join(f"{n} 0 R" for n in numbers)
        members = f"/MediaBox[0 0 600 800]{resources}/Annots[{refs}]/Contents {stream(text)} 0 R"
        kids.append(add(f"<</Type/Page/Parent 2 0 R{members}>>"))
    form = f"/AcroForm<</Fields[{' '.join(f'{n} 0 R' for n in fields)}]/DR<</Font<</F1 3 0 R>>>>/DA(/F1 12 Tf)>>"
    objects[0] = f"<</Type/Catalog/Pages 2 0 R{form if fields else ''}{root}>>"
    objects[1] = f"<</Type/Pages/Kids[{' '.join(f'{n} 0 R' for n in kids)}]/Count {len(kids)}>>"
    out, offsets = "%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj{body}endobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    tail = f"trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF"
    path.write_bytes(f"{out}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}{tail}".encode("latin-1"))
    return path


PIXEL = (
    "<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8/Length 1>>"
    "stream\nx\nendstream"
)
SCAN = "q 600 0 0 800 0 0 cm /Im1 Do Q"


def words(*placed: tuple[int, int, str]) -> str:
    """Return a content stream with texts, each at its x and y."""
    return "".join(f"BT /F1 12 Tf {x} {y} Td ({text}) Tj ET " for x, y, text in placed)
