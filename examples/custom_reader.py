"""A reader of your own: subtitles become documents whose hits say at which minute something is said.

A reader that `likewise index` uses for files is in docs/adding-a-reader.md.

Prints:

    00:12:40 Bees dance in a figure of eight to tell each other where flowers are and how far away.
    [('00:00:05', 0, 85), ('00:12:40', 86, 172)]
"""

import re

from likewise import Document, Index, Searcher, Section

SUBTITLES = """1
00:00:05,000 --> 00:00:09,000
Water boils at a lower temperature on a mountain, because the air presses less on it.

2
00:12:40,000 --> 00:12:44,000
Bees dance in a figure of eight to tell each other where flowers are and how far away.
"""


def read(text: str) -> Document:
    spoken, sections = "", []
    for number, time, line in re.findall(r"^(\d+)\n([\d:]+),\d+ --> .*\n(.+)\n", text, re.MULTILINE):
        sections.append(Section(len(spoken), heading=time, page=int(number)))  # no passage crosses a page
        spoken += line + "\n"
    return Document("film.srt", spoken, "A film", sections=tuple(sections))


index = Index.temporary()
index.add(read(SUBTITLES))
with Searcher(index.address) as searcher:
    (hit,) = searcher.search("how do insects communicate", k=1, passages=True)
    print(hit.heading, hit.text)
    print([(passage.heading, passage.start, passage.end) for passage in searcher.passages("film.srt")])
index.close()
