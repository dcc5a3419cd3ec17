"""A back end with FastAPI: `uvicorn examples.fastapi_back_end:app`. Here a test client asks it.

Prints:

    {'uri': 'kettle', 'text': 'Boils water quickly.'}
    400
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from fastapi.testclient import TestClient

from likewise import Document, Index, LikewiseError, Searcher


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    with Index.open("shop.index", create=True) as index, Searcher("shop.index") as app.state.searcher:
        index.add([Document("kettle", "Boils water quickly."), Document("lamp", "Gives a warm light.")])
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/search")
def search(request: Request, q: str) -> list[dict[str, Any]]:
    return [{"uri": hit.uri, "text": hit.text} for hit in request.app.state.searcher.search(q)]


@app.exception_handler(LikewiseError)
def refuse(request: Request, error: LikewiseError) -> JSONResponse:
    return JSONResponse({"error": str(error)}, error.http_status)


if __name__ == "__main__":
    with TestClient(app) as client:
        print(client.get("/search", params={"q": "make tea"}).json()[0])
        print(client.get("/search", params={"q": " "}).status_code)
