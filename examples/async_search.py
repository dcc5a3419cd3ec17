"""Ask from coroutines: questions of several tasks are embedded together, and a task that is cancelled frees its place.

Prints:

    ['fact-0', 'fact-1']
"""

import asyncio

from likewise import AsyncSearcher, Document, Index

FACTS = ["Bread goes stale as its starch crystallises.", "A supernova is the end of a heavy star."]


async def main() -> None:
    async with AsyncSearcher("facts.index") as searcher:
        async with asyncio.timeout(60):
            answers = await asyncio.gather(searcher.search("old loaf", k=1), searcher.search("exploding suns", k=1))
        print([hits[0].uri for hits in answers])


with Index.open("facts.index", create=True) as index:
    index.add(Document(f"fact-{number}", text) for number, text in enumerate(FACTS))
asyncio.run(main())
