"""A back end with Django in one file: one searcher per process, and documents added when a transaction commits.

Prints:

    {'uris': ['kettle']}
    400
"""

from functools import cache

import django
from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.test import Client
from django.urls import path

from likewise import BadInput, Document, Index, Searcher

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="example")
django.setup()


@cache
def searcher() -> Searcher:
    return Searcher("site.index")


def find(request: HttpRequest) -> JsonResponse:
    try:
        hits = searcher().search(request.GET.get("q", ""), k=1)
    except BadInput as error:
        return JsonResponse({"error": str(error)}, status=error.http_status)
    return JsonResponse({"uris": [hit.uri for hit in hits]})


urlpatterns = [path("find", find)]

if __name__ == "__main__":
    with Index.open("site.index", create=True) as index:
        index.add([Document("kettle", "Boils water quickly."), Document("lamp", "Gives a warm light.")])
    print(Client().get("/find", {"q": "make tea"}).json())
    print(Client().get("/find", {"q": ""}).status_code)
