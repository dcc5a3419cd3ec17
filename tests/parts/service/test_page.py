"""The page at /, as files and in a browser, with its Content-Security-Policy enforced."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pdf_files
import pytest
from chromium import CHROMIUM, FLAGS, serving_here
from parts.map.drawn_maps import keep
from starlette.testclient import TestClient

from indexer import Document, Index
from indexer.records import Section
from likewise.map.file import Map
from likewise.map.regions import Region
from likewise.service import create_app
from likewise.service.http.page.page import FOLDER, POLICY

try:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import Browser, Page, Request, Route, expect, sync_playwright
except ModuleNotFoundError:  # the extra `dev` has them
    CHROMIUM = None

in_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="needs playwright, and Chromium (LIKEWISE_TEST_CHROMIUM, or on PATH)"
)

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
BEFORE, AFTER = ("\n".join(f"Line {n} {place}, of nothing." for n in range(900)) for place in ("before", "after"))
EN = {"lang": "en"}
DOCUMENTS = [
    Document(
        "moon", "The moon orbits the earth.\nIt is full once a month. 🦉 owls see it.", "Moon", EN | {"year": 2020}
    ),
    Document("sun", "The sun is a star. It shines by day.", "Sun", EN | {"year": 2021, "tags": ["star", "day"]}),
    Document("erde", "Die Erde kreist um die Sonne.", "Erde", {"year": 2022, "lang": "de"}),
    Document("bread", "Bread is baked in an oven.", "Bread", EN | {"year": 2019}),
    Document("comet", "A comet has a tail.", "Comet", {"year": 2018, "lang": "de"}),
    Document(
        f"javascript:alert('{HOSTILE}')",
        "A hostile planet <img src=x onerror=hacked=1>",
        HOSTILE,
        EN
        | {
            "link": "javascript:window.hacked=1",
            "home": "https://example.org/a",
            "html": HOSTILE,
            f"<b>{HOSTILE}": "x",
            "data": "data:text/html,<script>parent.hacked=1</script>",
            "year": 2017,
        },
    ),
]
BOOKS = [Document("long", f"{BEFORE}\nA comet has a tail.\n{AFTER}", "How long is a text?")]
FLOOD = [
    Document(f"n{n}", f"Number {n} of many.", f"Number {n}", {"n": n, "created": f"2024-01-{n + 1:02}"})
    for n in range(30)
]
FILES = [
    Document(
        f"/srv/house/{folder}/{n}.txt",
        f"File {n} in the folder of {folder}.",
        f"File {n}",
        {
            **{f"common {m}": (n + m) % 3 for m in range(9)},
            **{"year": 2000 + n, "size": n // 2, "checksum": f"{n % 5:032x}", "same": "always"},
            **({f"rare {m}": n for m in range(250)} if n >= 38 else {}),
        },
        path=f"/srv/house/{folder}/{n}.txt",
        format="text" if n % 2 else "html",
    )
    for n in range(40)
    for folder in [("bills", "letters")[n % 4 == 0]]
]


# files


@pytest.fixture(scope="module")
def files(shared: TestClient) -> dict[str, Any]:
    first = shared.get("/")
    paths = set(re.findall(r'(?:src|href)="(page/\w+/[\w.]+)"', first.text))
    return {"index.html": first} | {Path(path).name: shared.get(f"/{path}") for path in paths}


def test_files_have_their_type_and_the_policy(files: dict[str, Any]) -> None:
    types = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    assert {"index.html", "page.css", "page.js", "icon.svg"} <= files.keys()
    for name, answer in files.items():
        assert answer.status_code == 200, name
        assert answer.headers["content-type"].startswith(types[Path(name).suffix])
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        kept = answer.headers["cache-control"]
        assert kept == ("no-cache" if name == "index.html" else "private, max-age=31536000, immutable")
    assert sum(len(answer.content) for answer in files.values()) < 200_000
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")


def test_files_are_compressed_for_browsers_and_named_by_their_hash(shared: TestClient, files: dict[str, Any]) -> None:
    plain = files["page.js"]
    browser = {"Sec-Fetch-Mode": "no-cors", "Accept-Encoding": "gzip"}
    compressed = shared.get(plain.url.path, headers=browser)
    assert (compressed.headers["content-encoding"], compressed.text) == ("gzip", plain.text)
    assert int(compressed.headers["content-length"]) < len(plain.content) / 2
    assert "content-encoding" not in plain.headers
    assert shared.get("/openapi.json", headers=browser).headers["content-encoding"] == "gzip"
    assert shared.get("/page/0123456789abcdef/page.js").status_code == 404  # of another version


def test_a_browser_that_has_the_first_page_gets_304(shared: TestClient) -> None:
    tag = shared.get("/").headers["etag"]
    for known in (tag, f"W/{tag}", f'"other", {tag}'):
        again = shared.get("/", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert shared.get("/", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize("name", ["none.js", "index.html", "..%2f..%2fpage.py", "%2e%2e/page.py", "page.py", ".."])
def test_nothing_but_the_files_of_the_page_is_served(shared: TestClient, files: dict[str, Any], name: str) -> None:
    version = re.search(r'"page/(\w+)/', files["index.html"].text)[1]  # type: ignore[index]
    assert b"import" not in shared.get(f"/page/{version}/{name}").content


def test_no_file_parses_html_or_runs_text(files: dict[str, Any]) -> None:
    """The policy refuses these in a browser that knows it; no browser should have to."""
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setHTML|parseFromString|srcdoc"
    )
    for name, answer in files.items():
        assert not re.search(forbidden, answer.text), name
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)\w", answer.text), name  # no outside host
    html = files["index.html"].text
    assert not re.search(r"\sstyle=|\son\w+=|<style|<script(?![^>]*\ssrc=)", html)
    assert 'setTimeout("' not in "".join(answer.text for answer in files.values())


def test_every_module_is_in_one_of_the_three_scripts_once(shared: TestClient, files: dict[str, Any]) -> None:
    assert files.keys() == {"index.html", "page.css", "early.js", "page.js", "icon.svg"}
    early, main = files["early.js"].text, files["page.js"].text
    later = shared.get(files["page.js"].url.path.replace("page.js", "map.js")).text
    modules = [
        [int(number) for number in re.findall(r"^const module(\d+) =", each, re.MULTILINE)]
        for each in (early, main, later)
    ]
    count = len(list(FOLDER.glob("*.js")))
    assert modules == [list(range(5)), list(range(5, count - 2)), [count - 2, count - 1]]
    assert [("class MapView" in each, "class Picture" in each) for each in (main, later)] == [(False,) * 2, (True,) * 2]
    assert main.count("import(") == 1
    imported = [re.findall(r"^import .* from (.*);$", each, re.MULTILINE) for each in (early, main, later)]
    assert imported == [[], ['"./early.js"'], ['"./page.js"']]


def test_wheels_hold_the_files() -> None:
    """hatch packs every file of a package that git does not ignore."""
    root = Path(__file__).parents[3]
    ignored = (root / ".gitignore").read_text().split()
    assert not {"*.js", "*.css", "*.html", "*.svg", "assets", "assets/", "page", "page/"} & set(ignored)
    assert 'packages = ["indexer", "likewise", "search"]' in (root / "pyproject.toml").read_text()


# in a browser


@dataclass
class Site:
    """A running service and the folders of its indexes."""

    port: int
    folders: dict[str, Path]
    stop: Callable[[], None] = lambda: None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, module_encoder: Any) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("page")
    folders = {name: folder / f"{name}.index" for name in ("papers", "numbers", "books", "files")}
    for path, documents in zip(folders.values(), (DOCUMENTS, FLOOD, BOOKS, FILES), strict=True):
        with Index.create(path, model=module_encoder) as index:
            index.add(documents)
    # Thirty numbers in six columns, the small ones below; two regions.
    places = np.array([[number % 6 / 5, number // 6 / 4] for number in range(30)], np.float32)
    regions = (Region(0.5, 0.2, 0, 15, ("small", "numbers")), Region(0.5, 0.8, 0, 15, ("large",)))
    keep(folders["numbers"], Map(tuple(document.uri for document in FLOOD), places, regions))
    app = create_app({name: str(path) for name, path in folders.items()}, writable=True)
    with serving_here(app) as port:
        yield Site(port, folders)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield opened
        opened.close()


@dataclass
class Tab:
    """A page in the browser, with what its console reported."""

    page: Page
    site: Site
    reported: list[str] = field(default_factory=list)

    def go(self, query: str = "") -> None:
        self.page.goto(self.site.address + query)
        expect(self.page.locator("#index option")).not_to_have_count(0)

    def ask(self, question: str) -> None:
        self.page.locator("#question").fill(question)
        expect(self.page.locator("#hits")).to_have_attribute("data-question", question)

    @property
    def titles(self) -> list[str]:
        return self.page.locator("#hits a.title").all_inner_texts()

    @property
    def query(self) -> str:
        return str(self.page.evaluate("location.search"))


@pytest.fixture
def open_tab(browser: Browser, site: Site) -> Iterator[Callable[..., Tab]]:
    """Open a tab with an empty profile. At the end nothing may have gone wrong in it, nor met the policy."""
    tabs: list[Tab] = []

    with ExitStack() as closing:

        def open_one(of: Site = site, **options: Any) -> Tab:
            context = closing.enter_context(browser.new_context(viewport={"width": 1280, "height": 900}, **options))
            context.set_default_timeout(30_000)
            tab = Tab(context.new_page(), of)
            tab.page.on("console", lambda message: tab.reported.append(f"{message.type}: {message.text}"))
            tab.page.on("pageerror", lambda error: tab.reported.append(f"uncaught: {error}"))
            tab.page.add_init_script(
                "document.addEventListener('securitypolicyviolation',"
                " event => console.error('policy', event.violatedDirective, event.blockedURI));"
            )
            tabs.append(tab)
            return tab

        yield open_one
        reported = [line for tab in tabs for line in tab.reported]
    assert reported == []


@pytest.fixture
def tab(open_tab: Callable[..., Tab]) -> Tab:
    return open_tab()


@in_browser
def test_typing_gives_hits_with_their_words_and_best_sentence_marked(tab: Tab) -> None:
    tab.go()
    expect(tab.page.locator("#about")).to_contain_text("6 documents")
    expect(tab.page.locator("#question")).to_be_focused()
    tab.page.keyboard.type("the moon full")
    expect(tab.page.locator("#hits")).to_have_attribute("data-question", "the moon full")
    assert tab.titles[0] == "Moon"
    assert tab.page.locator("#hits > li").first.locator(".passage mark").all_inner_texts() == ["moon", "full"]
    expect(tab.page.locator("#status")).to_contain_text("6 documents, best first")
    sentence = tab.page.locator("#hits > li").first.locator(".sentence")
    expect(sentence).to_have_text(re.compile("The moon orbits the earth|It is full once a month"))
    assert "q=the+moon+full" in tab.query
    assert tab.page.title() == "the moon full – likewise"


@in_browser
def test_conditions_are_named_and_can_be_asked_for_as_text(tab: Tab) -> None:
    tab.go("?mode=words")
    tab.ask("sun -star")
    expect(tab.page.locator("#notices")).to_contain_text("read as conditions: -star")
    expect(tab.page.locator("#hits")).not_to_contain_text("The sun is a star")
    tab.page.get_by_role("button", name="Ask for the text as it stands").click()
    expect(tab.page.locator("#hits > li").first).to_contain_text("The sun is a star")
    expect(tab.page.locator("#notices")).to_be_empty()
    assert "literal=true" in tab.query
    tab.page.get_by_role("button", name="Remove the filter: the question as it stands").click()
    expect(tab.page.locator("#notices")).to_contain_text("read as conditions: -star")


@pytest.mark.slow
@in_browser
def test_offsets_count_code_points(tab: Tab) -> None:
    tab.go("?q=owls")
    expect(tab.page.locator("#hits > li").first.locator(".passage mark")).to_have_text("owls")
    tab.page.locator("#hits a.title").first.click()
    expect(tab.page.locator("#found mark")).to_have_text("owls")


@in_browser
def test_a_late_answer_never_replaces_a_later_one(tab: Tab) -> None:
    """The first request is held back; the question that follows cancels it and is answered."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        if route.request.post_data_json["query"] == "bread":
            held.append(route)
        else:
            route.continue_()

    failed: list[str] = []

    def note_failed(request: Request) -> None:
        if request.url.endswith("/search"):  # the list of documents is cancelled by the question, too
            failed.append(f"{request.post_data_json['query']}: {request.failure}")

    tab.page.on("requestfailed", note_failed)
    tab.page.route("**/search", hold)
    tab.go()
    tab.page.locator("#question").fill("bread")
    tab.page.wait_for_timeout(100)
    tab.ask("moon")
    assert tab.titles[0] == "Moon"
    assert [route.request.post_data_json["query"] for route in held] == ["bread"]
    assert failed == ["bread: net::ERR_ABORTED"]
    hits = {"query": "bread", "mode": "hybrid", "matched": 0, "exact": True, "answered": None, "notes": [], "hits": []}
    held[0].fulfill(json=hits)
    tab.page.wait_for_timeout(100)
    assert tab.titles[0] == "Moon"


@in_browser
def test_values_and_conditions_filter(tab: Tab) -> None:
    tab.go("?q=earth")
    expect(tab.page.locator("#status")).to_contain_text("6 documents")
    language = tab.page.locator("#fields details[data-field=lang]")
    assert [re.sub(r"\s+", " ", text) for text in language.locator("label").all_inner_texts()] == [
        *("en 4 documents", "de 2 documents")
    ]
    language.get_by_label("de").check()
    expect(language.get_by_label("de")).to_be_focused()
    expect(tab.page.locator("#status")).to_have_text("All 2 documents that pass the filters, best first")
    assert sorted(tab.titles) == ["Comet", "Erde"]
    assert 'pick=["lang","=","de"]' in tab.page.evaluate("decodeURIComponent(location.search)")
    tab.page.get_by_role("button", name="Remove the filter: lang is de").click()
    expect(tab.page.locator("#status")).to_contain_text("6 documents")

    tab.page.locator("#where").fill("yaer >= 2021")
    expect(tab.page.locator("#where-error")).to_contain_text('no document has a field "yaer"; near: year')
    expect(tab.page.locator("#where")).to_have_attribute("aria-invalid", "true")
    assert len(tab.titles) == 6  # what was found stays
    refused = tab.page.locator("#picks.refused li").first
    expect(refused).to_have_text("yaer >= 2021 is not used ×")
    tab.page.locator("#where").fill("year >= 2021")
    expect(tab.page.locator("#picks li").first).to_have_text("year >= 2021 ×")
    expect(tab.page.locator("#status")).to_contain_text("2 documents that pass")
    expect(tab.page.locator("#where-error")).to_be_empty()
    assert len(tab.reported) == 1
    assert "400" in tab.reported.pop()

    tab.page.locator("#hits > li", has_text="Sun").get_by_role("button", name="tags day").click()
    expect(tab.page.locator("#status")).to_contain_text("1 document that")
    assert tab.titles == ["Sun"]


@pytest.mark.slow
@in_browser
def test_of_many_fields_those_that_divide_the_documents_are_offered(tab: Tab) -> None:
    tab.go("?index=files&q=file")
    groups = tab.page.locator("#fields details.field")
    expect(groups.first.locator("summary")).to_have_text("format")
    names = groups.locator("summary").all_inner_texts()
    assert names[:4] == ["format", "folder", "year", "common 0"]
    assert (len(names), {"size", "checksum", "same", "rare 0"} & set(names)) == (8, set())

    def expect_counts(field: str, *counts: str) -> None:
        labels = tab.page.locator(f'#fields details[data-field="{field}"] label')
        expect(labels).to_have_text([f"{count} documents" for count in counts])

    expect_counts("format", "html20", "text20")
    tab.page.get_by_label("letters").check()
    expect(tab.page.locator("#status")).to_contain_text("10 documents that pass")
    expect_counts("format", "html10")  # values that no document has go
    expect_counts("path", "bills30", "letters10")
    assert 'under "/srv/house/letters"' not in tab.page.locator("#picks").inner_text()

    tab.page.locator("#where").fill("year < 2020")
    expect(tab.page.locator("#status")).to_contain_text("5 documents that pass")
    expect_counts("path", "bills15", "letters5")
    tab.page.get_by_role("button", name="Remove all filters").click()
    expect(tab.page.locator("#status")).to_have_text("All 40 documents in 2 hits, best first")
    tab.page.get_by_role("button", name="Undo").click()
    expect(tab.page.locator("#status")).to_contain_text("5 documents that pass")
    expect(tab.page.locator("#where")).to_have_value("year < 2020")
    tab.page.get_by_role("button", name="Remove the filter: year < 2020").click()
    expect(tab.page.locator("#picks")).to_contain_text("folder is letters")

    tab.page.locator("#more-fields summary").click()
    tab.page.get_by_label("Find a field").fill("common 8")
    tab.page.locator("#found-fields button").first.click()
    expect(groups.last.locator("label")).to_have_count(3)
    bars = tab.page.locator('#fields details[data-field="year"] .histogram span')
    expect(bars).to_have_count(20)
    heights = [bar.evaluate("bar => bar.style.height") for bar in bars.all()]
    assert [height for height in heights if height != "0%"] == ["100%"] * 10  # every fourth of forty years
    tab.page.get_by_label("Find a field").fill("rare 24")
    expect(tab.page.locator("#found-fields button")).to_have_text(["rare 24", *(f"rare 24{n}" for n in range(10))])


@pytest.mark.slow
@in_browser
def test_ranges_of_numbers_and_dates_filter(tab: Tab) -> None:
    tab.go("?index=numbers&q=number")
    expect(tab.page.locator("#status")).to_have_text("The 10 best of 30 documents")
    created, numbers = (tab.page.locator(f"#fields details[data-field={name}]") for name in ("created", "n"))
    created.get_by_label("from").fill("2024-01-21")
    created.get_by_label("from").blur()
    expect(tab.page.locator("#status")).to_have_text("All 10 documents that pass the filters, best first")
    numbers.get_by_label("to").fill("24")
    numbers.get_by_label("to").blur()
    expect(tab.page.locator("#status")).to_have_text("All 5 documents that pass the filters, best first")
    tab.page.go_back()
    expect(tab.page.locator("#status")).to_have_text("All 10 documents that pass the filters, best first")
    expect(numbers.get_by_label("to")).to_have_value("")


@pytest.mark.slow
@in_browser
def test_more_hits_are_shown_on_request(tab: Tab) -> None:
    tab.go("?index=numbers&q=number")
    tab.page.get_by_role("button", name="Show more").click()
    expect(tab.page.locator("#hits > li")).to_have_count(20)
    assert "k=20" in tab.query


@pytest.mark.slow
@in_browser
def test_a_panel_says_why(tab: Tab) -> None:
    tab.go("?q=moon")
    first = tab.page.locator("#hits > li").first
    expect(first.locator(".sentence")).to_be_visible()
    button = first.get_by_role("button", name="Why", exact=True)
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    why = first.locator(".why")
    expect(why).to_contain_text(
        re.compile(r"^\d+ % meaning, the rest wordsWords found: moonNearest sentence: .+Numbers")
    )
    numbers = why.get_by_text("BM25")
    expect(numbers).to_be_hidden()
    why.get_by_text("Numbers").click()
    expect(numbers).to_be_visible()
    answer = tab.page.request.post(
        f"{tab.site.address}v1/indexes/papers/search",
        data={"query": "moon"},
        headers={"Content-Type": "application/json"},
    ).json()["hits"][0]
    expect(why).to_contain_text(f"Score {answer['score']:.2f} is the sum of")
    expect(why).to_contain_text(f"cosine {answer['cosine']:.3f}")


@in_browser
def test_a_hit_opens_in_its_document_and_back_closes_it(tab: Tab) -> None:
    tab.go("?index=books&q=comet+tail")
    tab.page.locator("#hits a.title").first.click()
    dialog = tab.page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_have_text("How long is a text?")
    expect(dialog.locator("#found")).to_contain_text("A comet has a tail.")
    expect(dialog.locator("#found")).to_be_in_viewport()
    assert dialog.locator("#found mark").all_inner_texts() == ["comet", "tail"]
    expect(dialog.locator("#reader-body")).to_contain_text("Line 899 before, of nothing.")  # its neighbours
    expect(dialog.locator("#reader-body")).not_to_contain_text("Line 1 before,")
    dialog.get_by_role("button", name="Show everything before").click()
    expect(dialog.locator("#reader-body")).to_contain_text("Line 1 before,")
    linked = tab.page.url
    tab.page.go_back()
    expect(dialog).to_be_hidden()
    expect(tab.page).not_to_have_url(re.compile("open="))
    tab.page.go_forward()
    expect(dialog).to_be_visible()
    assert tab.page.url == linked
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    expect(tab.page).not_to_have_url(re.compile("open="))


@in_browser
def test_the_keyboard_alone_is_enough(tab: Tab) -> None:
    tab.go()
    keyboard, page = tab.page.keyboard, tab.page
    page.locator("#open-help").focus()
    keyboard.press("/")
    expect(page.locator("#question")).to_be_focused()
    keyboard.type("moon")
    expect(page.locator("#hits")).to_have_attribute("data-question", "moon")
    keyboard.press("ArrowDown")
    expect(page.locator("#hits a.title").nth(0)).to_be_focused()
    keyboard.press("ArrowDown")
    expect(page.locator("#hits a.title").nth(1)).to_be_focused()
    keyboard.press("ArrowUp")
    keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("It is full once a month.")
    keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#hits a.title").nth(0)).to_be_focused()
    keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("go to the question")
    keyboard.press("Escape")
    keyboard.press("ArrowUp")
    expect(page.locator("#question")).to_be_focused()
    keyboard.press("ArrowDown")
    keyboard.press("Control+k")
    expect(page.locator("#question")).to_be_focused()
    keyboard.type("/?")  # in a text these are letters
    expect(page.locator("#question")).to_have_value("/?")


@pytest.mark.slow
@in_browser
def test_a_link_shows_what_was_shown(tab: Tab, open_tab: Callable[..., Tab]) -> None:
    tab.go()
    tab.ask("earth and sun")
    tab.page.get_by_title("What the passage means").click()
    tab.page.locator("#where").fill("year > 2018")
    expect(tab.page.locator("#status")).to_contain_text("4 documents that pass")
    tab.page.locator("#hits a.title", has_text="Erde").click()
    expect(tab.page.locator("#found")).to_contain_text("Die Erde kreist um die Sonne.")
    other = open_tab()
    other.page.goto(tab.page.url)
    expect(other.page.locator("#found")).to_contain_text("Die Erde kreist um die Sonne.")
    other.page.keyboard.press("Escape")
    expect(other.page.locator("#question")).to_have_value("earth and sun")
    expect(other.page.get_by_label("Meaning")).to_be_checked()
    expect(other.page.locator("#status")).to_contain_text("4 documents that pass")
    expect(other.page).not_to_have_url(re.compile("open="))
    assert other.titles == tab.titles


@pytest.mark.slow
@in_browser
def test_the_question_of_an_address_is_asked_once_before_the_page_is_there(tab: Tab) -> None:
    held: list[Route] = []
    asked: list[dict[str, Any]] = []

    def hold(route: Route) -> None:
        held.append(route)

    tab.page.route("**/page.js", hold)
    tab.page.on("request", lambda request: request.url.endswith("/search") and asked.append(request.post_data_json))
    for query in ("?index=papers&q=moon&pick=%5B%22lang%22%2C%22%3D%22%2C%22en%22%5D", "?q=moon"):
        with tab.page.expect_request("**/papers/search"):
            tab.page.goto(tab.site.address + query, wait_until="commit")
        for _ in range(200):
            if held:
                break
            tab.page.wait_for_timeout(25)
        expect(tab.page.locator("#hits > li")).to_have_count(0)
        held.pop().continue_()
        expect(tab.page.locator("#hits a.title").first).to_have_text("Moon")
        expect(tab.page.locator(".sentence").first).to_be_visible()
        assert [("explain" in body, body.get("where")) for body in asked] == [
            (is_explained, '`lang` in ("en")' if "pick" in query else None) for is_explained in (False, True)
        ]
        asked.clear()


@in_browser
def test_back_returns_to_the_question_before(tab: Tab) -> None:
    tab.go()
    tab.page.keyboard.type("moon")
    tab.page.keyboard.press("Enter")
    tab.page.locator("#question").fill("bread")
    expect(tab.page.locator("#hits")).to_have_attribute("data-question", "bread")
    tab.page.go_back()
    expect(tab.page.locator("#question")).to_have_value("moon")
    expect(tab.page.locator("#hits")).to_have_attribute("data-question", "moon")
    tab.page.go_back()
    expect(tab.page.locator("#question")).to_have_value("")
    expect(tab.page.locator("#about")).to_be_visible()


@pytest.mark.slow
@in_browser
def test_indexes_are_chosen_among(tab: Tab) -> None:
    tab.go("?q=number")
    tab.page.get_by_label("Index").select_option("numbers")
    expect(tab.page.locator("#status")).to_have_text("The 10 best of 30 documents")
    expect(tab.page.locator("#fields details[data-field=created]")).to_be_visible()
    expect(tab.page.locator("#fields details[data-field=lang]")).to_have_count(0)
    tab.go("?index=none&q=number")
    expect(tab.page.get_by_role("alert").first).to_have_text("No index none is served here.")


@pytest.mark.slow
@in_browser
def test_all_indexes_are_asked_together(tab: Tab) -> None:
    """Each hit names its index, which its document, its filters and its examples belong to."""
    tab.go("?q=number+3+file&mode=words")
    tab.page.get_by_label("Index").select_option("All")
    expect(tab.page.locator("#status")).to_have_text("The 10 best of 71 documents")  # of the book, "Line 3"
    assert set(tab.page.locator("#hits .index").all_inner_texts()) == {"numbers", "files"}
    years = tab.page.locator("#fields details[data-field=year]")
    assert years.locator("input").first.get_attribute("placeholder") == "2000"
    formats = tab.page.locator("#fields details[data-field=format] label")
    expect(formats).to_have_text([re.compile("html ?20 documents"), re.compile("text ?20 documents")])

    formats.first.click()
    expect(tab.page.locator("#status")).to_have_text("All 20 documents that pass the filters in 2 hits, best first")
    assert set(tab.page.locator("#hits .place .index").all_inner_texts()) == {"files"}
    family = tab.page.locator("#hits .family").first
    family.locator("summary").click()
    expect(family.locator("li").first).to_contain_text("files")
    family.locator("a").first.click()
    expect(tab.page.locator("#reader-body")).to_contain_text("in the folder of letters.")
    assert "from=files" in tab.query
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("button", name="Remove the filter: format is html").click()

    tab.page.locator("#where").fill("lang = 'de' or n = 3")
    tab.ask("comet number")
    expect(tab.page.locator("#status")).to_have_text("All 2 documents that pass the filters, best first")
    expect(formats).to_have_text([re.compile("html ?documents"), re.compile("text ?documents")])  # not counted
    assert {*zip(tab.titles, tab.page.locator("#hits .index").all_inner_texts(), strict=True)} == {
        *(("Comet", "papers"), ("Number 3", "numbers"))
    }
    tab.page.get_by_role("link", name="Number 3").click()
    expect(tab.page.locator("#found")).to_have_text("Number 3 of many.")
    assert "from=numbers" in tab.query
    expect(tab.page.locator("#hits > li.here .index")).to_have_text("numbers")
    tab.page.reload()
    expect(tab.page.locator("#found mark").first).to_have_text("Number")
    expect(tab.page.locator("#hits > li.here .index")).to_have_text("numbers")
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("button", name="Show as curl").click()
    command = shlex.split(tab.page.locator("#curl").inner_text())
    assert command[2] == f"{tab.site.address}v1/search"
    tab.page.locator("#hits > li", has_text="Number 3").get_by_role("button", name="More like this in numbers").click()
    expect(tab.page.get_by_label("Index")).to_have_value("numbers")
    expect(tab.page.locator("#status")).to_have_text("More like “Number 3”")


def _answer(hits: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an answer of the service with hits that say only what a test is about."""
    whole = {
        "title": "T",
        "text": "b",
        "shown": [[0, 1]],
        "start": 0,
        "end": 1,
        "score": 1,
        "metadata": {},
        "why": {},
        "format": None,
    }
    whole |= {"page": None, "line": None, "heading": None, "path": None, "modified": None}
    answer = {"query": "x", "mode": "hybrid", "matched": len(hits), "exact": True, "answered": True, "notes": []}
    return answer | {"hits": [whole | hit for hit in hits]}


@pytest.mark.slow
@in_browser
def test_places_never_begin_with_the_folders_of_the_server(tab: Tab) -> None:
    """Files of two indexes have only the folder of the disk in common."""
    where = {"a": ["/srv/one/in/a.txt", "/srv/one/b.txt"], "b": ["/mnt/x/y/c.txt", "/tmp/z/d.txt"]}
    hits = [
        {
            "uri": path,
            "index": index,
            "path": path,
            "metadata": {"subject": "T", "n": at},
            "gone": path == "/tmp/z/d.txt",
        }
        for index, paths in where.items()
        for at, path in enumerate(paths)
    ]
    tab.page.route("**/search", lambda route: route.fulfill(json=_answer(hits)))
    tab.go("?index=*&q=x")
    expect(tab.page.locator("#hits .place")).to_have_text(
        ["a in/a.txt", "a b.txt", "b y/c.txt", "b z/d.txt · file is gone"]
    )
    expect(tab.page.locator("#hits .values")).to_have_text(["n 0", "n 1"] * 2)  # the subject is the title


@in_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_long_title_leaves_room_for_the_text(tab: Tab, width: int) -> None:
    title = "Donaudampfschifffahrtsgesellschaft" * 20
    document = {"uri": "a", "title": title, "text": "b", "metadata": {}, "sections": [], "original": None}
    document |= {"path": None, "format": None, "modified": None}
    tab.page.route("**/search", lambda route: route.fulfill(json=_answer([{"uri": "a", "title": title}])))
    tab.page.route("**/document?*", lambda route: route.fulfill(json=document))
    tab.page.set_viewport_size({"width": width, "height": 900})
    tab.go("?q=x")
    link = tab.page.locator("#hits a.title")
    expect(link).to_have_text(title)

    def wait_for_at_most_three_lines(selector: str) -> None:
        """A title that is being drawn again has no height yet."""
        tab.page.wait_for_function(
            """selector => {
              const node = document.querySelector(selector);
              const lines = node.clientHeight / parseFloat(getComputedStyle(node).lineHeight);
              return 0.5 < lines && lines < 3.5;
            }""",
            arg=selector,
        )

    wait_for_at_most_three_lines("#hits h2")
    assert tab.page.locator(".bar").evaluate("node => node.clientHeight") < 70  # all in one line
    link.click()
    expect(tab.page.locator("#found")).to_have_text("b")
    wait_for_at_most_three_lines("#reader-title")
    assert tab.page.locator("#reader-title").get_attribute("title") == title


@pytest.mark.slow
@in_browser
def test_without_a_question_all_indexes_are_listed(tab: Tab) -> None:
    tab.go("?index=*&view=map&like=moon")
    expect(tab.page.locator("#about .size")).to_contain_text("77 documents")
    expect(tab.page.locator("#about li")).to_have_text(
        ["papers · 6 documents", "numbers · 30 documents", "books · 1 document", "files · 40 documents"]
    )
    expect(tab.page.get_by_role("link", name="Map")).to_be_hidden()
    tab.page.get_by_role("button", name="numbers · 30 documents").click()
    expect(tab.page.locator("#status")).to_have_text("10 of 30 documents")
    expect(tab.page.get_by_role("link", name="Map")).to_be_visible()


@pytest.mark.slow
@in_browser
def test_a_question_that_nothing_answers_is_told_so(tab: Tab) -> None:
    answer = {"query": "x", "mode": "hybrid", "matched": 6, "exact": True, "answered": False, "notes": ["a note"]}
    hit = {
        **{"uri": "a", "title": "", "text": "b", "shown": [[0, 1]], "start": 0, "end": 1, "score": 0.5},
        **{"page": 3, "line": None, "heading": "A > B", "path": None, "format": None, "modified": None},
        **{"metadata": {}, "why": {"weak": True}},
    }
    tab.page.route("**/search", lambda route: route.fulfill(json={**answer, "hits": [hit]}))
    tab.go("?q=x")
    expect(tab.page.locator("#notices")).to_contain_text("Nothing here seems to answer this.")
    expect(tab.page.locator("#notices")).to_contain_text("a note")
    expect(tab.page.locator("#hits .place")).to_have_text("page 3 · A > B")
    expect(tab.page.locator("#hits .weak")).to_have_count(0)  # said once, above the hits
    answer["answered"] = True
    hit["format"] = "pptx"
    tab.ask("y")
    expect(tab.page.locator("#notices")).not_to_contain_text("Nothing here")
    expect(tab.page.locator("#hits .place")).to_have_text("slide 3 · A > B")
    expect(tab.page.locator("#hits .weak")).to_have_text("weak match")


@pytest.mark.slow
@in_browser
def test_a_document_is_found_by_the_name_of_its_file(tab: Tab) -> None:
    tab.go("?index=numbers&q=n15")
    expect(tab.page.locator("#notices .place").first).to_have_text("Named “n15”")
    tab.page.locator("#notices a.title", has_text="Number 15").click()
    expect(tab.page.locator("#reader-title")).to_have_text("Number 15")
    tab.go("?index=numbers&q=n15&where=n+%3C+9")  # the filter leaves no such document
    expect(tab.page.locator("#hits .sentence")).not_to_have_count(0)
    expect(tab.page.locator("#notices .named")).to_have_count(0)
    tab.go("?index=papers&q=comet")
    expect(tab.page.locator("#hits .sentence")).not_to_have_count(0)
    expect(tab.page.locator("#notices")).to_be_empty()  # the first hit is that document


@pytest.mark.slow
@in_browser
def test_a_refusal_is_shown(tab: Tab) -> None:
    tab.go("?q=the&mode=words")
    expect(tab.page.locator("#notices")).to_contain_text("has only words that are too common")
    assert tab.titles == []
    tab.reported.clear()  # the browser reports the status 400 itself
    tab.ask("moon")
    assert tab.titles[0] == "Moon"


@in_browser
def test_hostile_documents_are_text(tab: Tab) -> None:
    tab.go("?q=hostile+planet&mode=words")
    hit = tab.page.locator("#hits > li").first
    expect(hit.locator("a.title")).to_have_text(HOSTILE)
    expect(hit.locator(".passage")).to_have_text("A hostile planet <img src=x onerror=hacked=1>")
    expect(hit.locator(".sentence")).to_be_visible()
    hit.get_by_role("button", name="Why", exact=True).click()
    hit.locator("a.title").click()
    expect(tab.page.locator("#found")).to_have_text("A hostile planet <img src=x onerror=hacked=1>")
    tab.page.locator("#reader .facts summary").click()
    expect(tab.page.locator("#reader .facts")).to_contain_text("javascript:window.hacked=1")
    links = tab.page.evaluate("[...document.querySelectorAll('a[href]')].map(link => link.href)")
    assert {link.split(":")[0] for link in links} == {"http", "https"}
    assert [link for link in links if not link.startswith(tab.site.address)] == ["https://example.org/a"] * 2
    assert (
        tab.page.evaluate("document.querySelectorAll('#hits img, #hits script, dialog img, dialog script').length") == 0
    )
    assert tab.page.evaluate("window.hacked") is None


@in_browser
def test_the_policy_is_enforced(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    tab.go()
    script = """async () => {
        const violated = [];
        document.addEventListener("securitypolicyviolation", (event) => violated.push(event.effectiveDirective));
        const script = document.createElement("script");
        const image = document.createElement("img");
        const style = document.createElement("style");
        image.src = "https://example.org/x.png";
        style.textContent = "body { color: red }";
        let refused = 0;
        for (const act of [
            () => { script.textContent = "window.hacked = 1"; },
            () => { document.body.innerHTML = "<b>x</b>"; },
            () => { document.body.setAttribute("onclick", "window.hacked = 1"); },
        ]) try { act(); } catch (error) { refused += error instanceof TypeError; }
        script.append("window.hacked = 1");
        try { document.body.append(script); } catch (error) { refused += error instanceof TypeError; }
        document.body.append(image, style);
        document.body.click();
        // Later, because the browser lets what a debugger runs make programs of text.
        await new Promise((done) => setTimeout(() => {
            try { Function("window.hacked = 1")(); } catch (error) { refused += error instanceof EvalError; }
            done();
        }));
        await fetch("https://example.org/").catch(() => { refused += 1; });
        await new Promise((done) => setTimeout(done, 100));
        return [refused, [...new Set(violated)].sort(), window.hacked ?? null];
    }"""
    refused, violated, hacked = tab.page.evaluate(script)
    assert refused >= 4
    assert {"connect-src", "img-src", "style-src-elem", "require-trusted-types-for"} <= set(violated)
    assert hacked is None
    assert tab.reported
    tab.reported.clear()


@pytest.mark.slow
@in_browser
def test_an_index_that_is_replaced_is_searched_as_it_is_now(
    open_tab: Callable[..., Tab], tmp_path: Path, module_encoder: Any
) -> None:
    folder, other = tmp_path / "a.index", tmp_path / "b.index"
    for path, name in ((folder, "old"), (other, "new")):
        with Index.create(path, model=module_encoder) as index:
            index.add(
                [Document(f"{name} {n}", f"A {name} comet.", f"The {name} comet {n}", {name: n < 2}) for n in range(4)]
            )
    with serving_here(create_app({"a": str(folder)})) as port:
        tab = open_tab(Site(port, {}))
        tab.go("?q=comet")
        expect(tab.page.locator("#hits a.title").first).to_contain_text("The old comet")
        shutil.move(folder, tmp_path / "gone.index")
        shutil.move(other, folder)
        tab.page.locator("#hits a.title").first.click()
        expect(tab.page.locator("#reader-body")).to_have_text(
            "This document is no longer in the index. Ask again to see what is."
        )
        tab.page.keyboard.press("Escape")
        tab.page.evaluate("Date.now = () => 4e12")  # fields are asked for again after a while
        tab.ask("a comet")
        expect(tab.page.locator("#status")).to_have_text("All 4 documents in 1 hit, best first")
        assert [title[:-1] for title in tab.titles] == ["The new comet "]
        expect(tab.page.locator("#fields details")).to_have_attribute("data-field", "new")
        # Counts of the fields that were shown before are refused with 400, if they are asked for first.
        assert [line for line in tab.reported if "404" not in line and "400" not in line] == []
        tab.reported.clear()


@pytest.mark.slow
@in_browser
def test_a_service_that_stops_is_asked_until_it_answers(open_tab: Callable[..., Tab], site: Site) -> None:
    app = {"papers": str(site.folders["papers"])}
    with serving_here(create_app(app)) as port:
        tab = open_tab(Site(port, {}))
        tab.go("?q=moon")
        expect(tab.page.locator("#hits a.title").first).to_have_text("Moon")
    tab.page.locator("#question").fill("bread")
    trouble = tab.page.get_by_role("alert").first
    expect(trouble).to_have_text("The service does not answer; trying again.")
    assert tab.titles[0] == "Moon"
    with serving_here(create_app(app), port):
        expect(tab.page.locator("#hits a.title").first).to_have_text("Bread")
        expect(trouble).to_be_hidden()
    assert [line for line in tab.reported if "ERR_CONNECTION_REFUSED" not in line] == []
    tab.reported.clear()


@pytest.mark.slow
@in_browser
def test_a_service_that_hangs_is_waited_for_and_told_of(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab()
    tab.page.clock.install()
    held: list[Route] = []
    tab.page.route("**/search", lambda route: held.append(route))  # noqa: PLW0108  # of Python, for playwright  # noqa: PLW0108 - playwright cannot wrap built-ins
    tab.go()
    tab.page.locator("#question").fill("moon")
    tab.page.clock.run_for(100)
    tab.page.clock.run_for(5000)
    trouble = tab.page.get_by_role("alert").first
    expect(trouble).to_have_text("The service has not answered yet; still waiting.")
    held[0].continue_()
    expect(tab.page.locator("#hits a.title").first).to_have_text("Moon")
    expect(trouble).to_be_hidden()


@pytest.mark.slow
@in_browser
def test_a_full_service_is_asked_again(tab: Tab) -> None:
    problem = {
        "type": "about:blank",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "too much to do",
        "slug": "full",
    }
    answers: list[str] = []

    def refuse_first(route: Route) -> None:
        answers.append(route.request.url)
        if len(answers) == 1:
            route.fulfill(status=503, json=problem, headers={"Retry-After": "0"})
        else:
            route.continue_()

    tab.page.route("**/search", refuse_first)
    tab.go("?q=moon")
    expect(tab.page.locator("#hits a.title").first).to_have_text("Moon")
    expect(tab.page.get_by_role("alert").first).to_be_hidden()
    assert len(answers) >= 2
    tab.reported.clear()  # the browser reports the status 503 itself


@pytest.mark.slow
@in_browser
def test_a_hit_is_copied_as_a_link(open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(permissions=["clipboard-read", "clipboard-write"])
    tab.go("?q=bread")
    hit = tab.page.locator("#hits > li").first
    hit.get_by_role("button", name="Copy link").click()
    expect(tab.page.locator("#said")).to_have_text("Link copied")
    link = tab.page.evaluate("navigator.clipboard.readText()")
    assert link.startswith(tab.site.address)
    tab.page.goto(link)
    expect(tab.page.locator("#found")).to_have_text("Bread is baked in an oven.")
    expect(tab.page.locator("#found mark")).to_have_text("Bread")  # the hits came after the document


@pytest.mark.slow
@in_browser
def test_without_a_question_documents_are_listed(tab: Tab) -> None:
    tab.go("?index=numbers")
    expect(tab.page.locator("#status")).to_have_text("10 of 30 documents")
    assert tab.titles[:2] == ["Number 29", "Number 28"]  # the last added first: they have no time
    tab.page.get_by_label("Sort").select_option("title")
    expect(tab.page.locator("#hits a.title").first).to_have_text("Number 0")
    assert tab.titles[1:3] == ["Number 1", "Number 10"]
    tab.page.locator("#where").fill("n < 2")
    expect(tab.page.locator("#status")).to_have_text("All 2 documents that pass the filters")
    expect(tab.page.locator("#about")).to_be_hidden()
    tab.page.locator("#where").fill("")
    expect(tab.page.locator("#about")).to_contain_text("small · numbers 15 documents")
    tab.page.get_by_role("button", name="small · numbers").click()
    expect(tab.page.locator("#status")).to_have_text("10 of 18 documents that pass the filters")
    tab.page.get_by_role("button", name="Remove the filter: region: small · numbers").click()
    tab.page.get_by_role("button", name="Show more").click()
    expect(tab.page.locator("#hits > li")).to_have_count(20)
    tab.go("?index=books")
    tab.page.get_by_role("button", name="How long is a text?").click()
    expect(tab.page.locator("#hits")).to_have_attribute("data-question", "How long is a text?")
    tab.page.keyboard.press("/")
    tab.page.keyboard.press("Enter")
    tab.page.locator("#question").fill("")
    expect(tab.page.locator("#about")).to_contain_text("Your last questions")


@pytest.mark.slow
@in_browser
def test_records_are_called_by_their_uris_and_times_of_one_day_are_no_filter(
    open_tab: Callable[..., Tab], tmp_path: Path, module_encoder: Any
) -> None:
    def record(number: int) -> Document:
        day = f"2024-05-0{number % 2 + 1}"
        metadata = {"day": day, "time": f"2024-05-01T1{number % 3}:00:00"}
        return Document(f"r{number}", f"The moon {number}.", "", metadata, path="/srv/moons.jsonl", format="jsonl")

    for name, count in (("records", 12), ("empty", 0)):
        with Index.create(tmp_path / f"{name}.index", model=module_encoder) as index:
            index.add([record(number) for number in range(count)])
    with serving_here(create_app({name: str(tmp_path / f"{name}.index") for name in ("records", "empty")})) as port:
        tab = open_tab(Site(port, {}))
        tab.go("?index=records&sort=title")
        expect(tab.page.locator("#hits > li")).to_have_count(10)
        assert set(tab.titles) <= {f"r{number}" for number in range(12)}
        expect(tab.page.locator("#fields details[data-field=day]")).to_have_count(1)
        expect(tab.page.locator("#fields details[data-field=time]")).to_have_count(0)
        expect(tab.page.get_by_label("Sort")).to_be_visible()
        tab.page.get_by_label("Index").select_option("empty")
        expect(tab.page.locator("#about .size")).to_have_text("There are no documents in this index yet.")
        expect(tab.page.get_by_label("Sort")).to_be_hidden()
        tab.page.goto("about:blank")


@pytest.mark.slow
@in_browser
def test_where_nothing_is_found_buttons_go_on(tab: Tab) -> None:
    tab.go('?index=numbers&q=zzz&mode=words&pick=["n",">=",3]')
    expect(tab.page.locator("#status")).to_have_text("Nothing was found among the documents that pass the filters.")
    expect(tab.page.locator("#notices button")).to_have_text(["Search by meaning", "Remove filters"])
    expect(tab.page.locator("#where")).to_have_attribute("placeholder", "created >= 2024-01-01")
    tab.page.get_by_role("button", name="Remove filters").click()
    expect(tab.page.locator("#status")).to_have_text("Nothing was found.")
    tab.page.get_by_role("button", name="Search by meaning").click()
    expect(tab.page.locator("#hits > li")).to_have_count(10)
    tab.page.get_by_role("button", name="Why").first.click()
    expect(tab.page.locator(".why:visible p").first).to_have_text("meaning alone")


@pytest.mark.slow
@in_browser
def test_old_hits_are_dimmed_until_the_answer_is_there(tab: Tab) -> None:
    held: list[Route] = []
    tab.go("?q=moon")
    expect(tab.page.locator("#hits .sentence")).not_to_have_count(0)
    expect(tab.page.locator("#results")).to_have_attribute("aria-busy", "false")
    tab.page.route("**/search", lambda route: held.append(route))  # noqa: PLW0108  # of Python, for playwright
    tab.page.locator("#question").fill("sun")
    expect(tab.page.locator("#results")).to_have_attribute("aria-busy", "true")
    expect(tab.page.locator("#hits")).to_have_css("opacity", "0.45")
    held[-1].continue_()
    expect(tab.page.locator("#hits")).to_have_css("opacity", "1")
    tab.page.unroute("**/search")


@pytest.mark.slow
@in_browser
def test_a_question_has_room_beside_a_document(tab: Tab) -> None:
    for width in (1200, 1280):
        tab.page.set_viewport_size({"width": width, "height": 900})
        tab.go(f"?q={'what the moon is made of, and how often it is full at night, ok'[:60]}&open=moon")
        expect(tab.page.locator("#reader")).to_be_visible()
        widths = "(({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])(document.querySelector('#question'))"
        needed, given = tab.page.evaluate(widths)
        assert needed <= given


@in_browser
def test_a_hit_says_nothing_twice(open_tab: Callable[..., Tab], tmp_path: Path, module_encoder: Any) -> None:
    mail = {
        "from": "Ada <ada@example.org>",
        "thread": "m1@example.org",
        "author": "(anonymous)",
        "tags": ["new", "old"],
    }
    header = "From: Ada <ada@example.org>\nDate: Fri, 1 Mar 2024 09:12:00 +0100\n\n"
    row = {"name": "wall lamp", "price": 5, "metadata": {"title": "x"}}
    table = 'lamp,"price, net"\nlight lamp,5\n'
    with Index.create(tmp_path / "mixed.index", model=module_encoder) as index:
        index.add(
            [
                Document("m", f"{header}Bulbs, please.", "Bulbs", mail, format="mbox"),
                Document("t", table, "Offer", format="eml", sections=(Section(0, "offer.csv"),)),
                Document("P1", "id: P1\nname: wall lamp\nprice: 5.0", "", row, format="csv"),
                Document("n", "# The 🦉 owl\n\nIt hoots at night.", "The 🦉 owl", format="markdown"),
            ]
        )
    with serving_here(create_app({"mixed": str(tmp_path / "mixed.index")})) as port:
        tab = open_tab(Site(port, {}))
        tab.go("?q=wall+owl")
        hits = tab.page.locator("#hits > li")
        for title, passage, values in (
            ("Bulbs", ["Bulbs, please."], ["from Ada <ada@example.org>", "tags new", "tags old"]),
            ("Offer", ["lampprice, netlight lamp5"], []),
            ("P1", ["name: wall lamp", "price: 5.0"], ["metadata.metadata.title x"]),
            ("The 🦉 owl", ["It hoots at night."], []),
        ):
            hit = hits.filter(has=tab.page.get_by_role("link", name=title, exact=True))
            expect(hit.locator(".passage > *")).to_have_text(passage)
            expect(hit.locator(".values li")).to_have_text(values)
        expect(hits.locator(".passage td").first).to_have_text("lamp")
        expect(hits.locator(".passage mark")).to_have_text(["wall"])
        expect(hits.locator(".values .name")).to_have_text(["metadata.metadata.title", "from", "tags"])
        tab.page.goto("about:blank")


@pytest.mark.slow
@in_browser
def test_a_table_is_one_line_that_opens_to_its_rows(
    open_tab: Callable[..., Tab], tmp_path: Path, module_encoder: Any
) -> None:
    def row(number: int) -> Document:
        text, path = f"city: Oslo number: {number}", "/srv/house/tables/trips.csv"
        return Document(f"{path}:{number + 2}", text, "", {"from": f"Person {number % 24}"}, path=path, format="csv")

    with Index.create(tmp_path / "house.index", model=module_encoder) as index:
        index.add([Document("/srv/house/a.txt", "A moon.", "Moon", path="/srv/house/a.txt", format="text")])
        index.add([row(number) for number in range(48)])
    with serving_here(create_app({"house": str(tmp_path / "house.index")})) as port:
        tab = open_tab(Site(port, {}))
        tab.go()
        expect(tab.page.locator("#hits a.title")).to_have_text(["trips.csv", "Moon"])
        expect(tab.page.locator("#status")).to_have_text("All 49 documents")
        expect(tab.page.locator("#hits .place").first).to_have_text("tables/trips.csv · 48 rows")
        tab.page.locator("#hits a.title").first.click()
        expect(tab.page.locator("#status")).to_have_text("10 of 48 documents that pass the filters")
        expect(tab.page.locator("#picks li")).to_have_text(["file is trips.csv ×"])
        assert tab.titles[0] == "trips.csv:49"
        tab.page.get_by_role("button", name="Remove the filter: file is trips.csv").click()
        expect(tab.page.locator("#hits a.title")).to_have_count(2)

        # A field of many values has a box, which finds also those that are not listed.
        people = tab.page.locator("#fields details[data-field=from]")
        expect(people.locator("label:visible")).to_have_count(8)
        tab.page.get_by_label("Find a value of from").fill("PERSON 2")
        expect(people.locator("label")).to_have_text([f"Person 2{end}2 documents" for end in ("", *range(4))])
        people.get_by_label("Person 23").check()
        expect(tab.page.locator("#status")).to_have_text("All 2 documents that pass the filters")
        expect(people.get_by_label("Person 23")).to_be_focused()
        tab.page.get_by_label("Find a value of from").fill("nobody")
        expect(people.locator("label")).to_have_text(["Person 230 documents"])  # that is chosen
        tab.ask("trips.csv")
        expect(tab.page.locator("#notices .named .place")).to_have_text(
            ["Named “trips.csv”", "tables/trips.csv · 2 rows"]
        )
        tab.page.goto("about:blank")


@pytest.mark.slow
@in_browser
def test_hits_are_saved_and_shown_as_a_command(tab: Tab) -> None:
    tab.go("?q=moon%27s+earth&where=year+%3E+2019")
    expect(tab.page.locator("#hits > li")).to_have_count(3)
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("button", name="CSV").click()
    rows = list(csv.DictReader(Path(saved.value.path()).read_text().splitlines()))
    assert [row["title"] for row in rows] == tab.titles
    assert {row["title"]: row["year"] for row in rows}["Moon"] == "2020"
    with tab.page.expect_download() as saved:
        tab.page.get_by_role("button", name="JSON").click()
    assert [hit["title"] for hit in json.loads(Path(saved.value.path()).read_text())] == tab.titles
    tab.page.get_by_role("button", name="Show as curl").click()
    command = shlex.split(tab.page.locator("#curl").inner_text())
    assert command[:3] == ["curl", "-s", f"{tab.site.address}v1/indexes/papers/search"]
    asked = {"k": 10, "query": "moon's earth", "literal": False, "fold": True, "where": "year > 2019"}
    assert json.loads(command[-1]) == asked


@pytest.mark.slow
@in_browser
def test_marks_of_markup_are_not_shown_and_code_stays(tab: Tab) -> None:
    markdown = (
        "## A *moon*\n\nThe **moon** is [full](https://example.org/x)\nonce a `month`.\n\n"
        "```py\nfor n in moons:\n    n()\n```\n"
    )
    rst = (
        "A moon\n======\n\nSee :pep:`8` and ``code *x*`` of `the moon <https://x.org>`__::\n\n"
        "    def moon():\n        pass\n"
    )
    listed = (
        "- The sun shines, so::\n\n      sun()\n\n  and it is day.\n\n.. note::\n\n   The earth is near.\n\n"
        ".. code-block:: python\n\n   earth()\n\n     for::\n\n"
        "Text.\n\n  A quoted paragraph::\n\n    near()\n\n      far()\n   \n  It ends here.\n\n"
        ".. _Sky: https://example.org/\n.. [1] A footnote [2]_.\n"
    )
    hit = {"title": "", "start": 0, "score": 1, "page": None, "line": None, "heading": "", "path": None, "metadata": {}}
    myst = (
        "(moon-label)=\n# Moons\n\n```{note}\n:class: tip\n"
        "Call {func}`~moon.rise` of the {ref}`guide <moon-label>`.\n```\n\n"
        ":::{warning}\nThe {{ planet }} is `near`.\n:::\n\n```{code-block} python\nmoon()\n```\n"
    )
    sphinx = (
        ".. index:: moon\n\n.. |planet| replace:: Earth\n\n.. note::\n   :class: tip\n\n"
        "   Call :func:`~moon.rise` of :ref:`the guide <moon-label>` on |planet|.\n"
    )
    texts = (("markdown", markdown), ("rst", rst), ("rst", listed), ("rst", sphinx), ("markdown", myst))
    found = [
        hit | {"uri": text[:9], "text": text, "shown": [[0, len(text)]], "format": markup} for markup, text in texts
    ]
    answer = {"query": "x", "mode": "hybrid", "matched": 5, "exact": True, "answered": True, "notes": [], "hits": found}
    tab.page.route("**/search", lambda route: route.fulfill(json=answer))
    tab.go("?q=x")
    expect(tab.page.locator("#hits > li")).to_have_count(5)
    parts = [hit.locator("p, pre").all_inner_texts() for hit in tab.page.locator("#hits .passage").all()]
    assert parts == [
        ["A moon", "The moon is full once a month.", "for n in moons:\n    n()"],
        ["A moon", "See 8 and code *x* of the moon:", "    def moon():\n        pass"],
        [
            *("- The sun shines, so:", "      sun()", "and it is day.", "note", "The earth is near."),
            *("code-block python", "   earth()\n\n     for::", "Text.", "A quoted paragraph:"),
            *("    near()\n\n      far()", "It ends here.", "[1] A footnote [2]."),
        ],
        ["note", "Call moon.rise of the guide on planet."],
        ["Moons", "Call moon.rise of the guide.", "The planet is near.", "moon()"],
    ]
    assert tab.page.locator("#hits .passage code").all_inner_texts() == ["month", "code *x*", "near"]


@pytest.mark.slow
@in_browser
def test_more_like_a_hit(tab: Tab) -> None:
    tab.go("?q=moon")
    tab.page.locator("#hits > li").first.get_by_role("button", name="More like this").click()
    expect(tab.page.locator("#status")).to_have_text("More like “Moon”")
    expect(tab.page.locator("#hits > li")).to_have_count(5)
    assert "Moon" not in tab.titles
    tab.page.reload()
    expect(tab.page.locator("#hits > li")).to_have_count(5)
    tab.page.go_back()
    expect(tab.page.locator("#hits a.title").first).to_have_text("Moon")


@pytest.mark.slow
@in_browser
def test_hits_are_examples_beside_the_question(tab: Tab) -> None:
    asked: list[dict[str, Any]] = []
    tab.page.on("request", lambda request: asked.append(request.post_data_json) if "/search" in request.url else None)
    tab.go("?q=moon")
    expect(tab.page.locator("#hits > li")).to_have_count(6)
    first = tab.page.locator("#hits > li").first
    expect(first.locator(".actions button")).to_have_text(["Why", "More like this", "Copy link"])
    first.get_by_role("button", name="More like this").click()
    expect(tab.page.locator("#hits > li")).to_have_count(5)
    body = next(body for body in reversed(asked) if not body.get("explain"))
    assert (body["query"], body["like"]) == ("moon", ["moon"])
    tab.page.get_by_role("button", name="Remove the filter: like Moon").click()
    expect(tab.page.locator("#hits a.title").first).to_have_text("Moon")


@pytest.mark.slow
@in_browser
def test_the_document_is_beside_the_list_and_follows_j_and_k(tab: Tab) -> None:
    tab.go("?q=earth")
    tab.page.locator("#hits a.title").first.click()
    expect(tab.page.locator("#found")).to_be_visible()
    expect(tab.page.locator("#hits a.title").nth(1)).to_be_in_viewport()
    second = tab.titles[1]
    tab.page.keyboard.press("j")
    expect(tab.page.locator("#reader-title")).to_have_text(second)
    tab.page.keyboard.press("k")
    expect(tab.page.locator("#reader-title")).to_have_text(tab.titles[0])
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("dialog")).to_be_hidden()
    tab.page.set_viewport_size({"width": 700, "height": 800})
    tab.page.locator("#hits a.title").first.click()
    tab.page.keyboard.press("j")
    expect(tab.page.locator("#reader-title")).to_have_text(second)


@pytest.mark.slow
@in_browser
def test_two_modes_or_two_indexes_are_compared(tab: Tab) -> None:
    def hits(side: int) -> list[str]:
        titles = tab.page.locator("#comparison section").nth(side).locator(".title a").all_inner_texts()
        return list(titles)

    tab.go("?q=moon+day")
    tab.page.get_by_label("Compare with").select_option("Words")
    expect(tab.page.locator("#comparison h2")).to_have_text(["Both", "Words"])
    expect(tab.page.locator("#status")).to_contain_text("2 of 6 hits are in both")
    assert (sorted(hits(1)), len(hits(0))) == (["Moon", "Sun"], 6)
    expect(tab.page.locator("#hits")).to_be_hidden()
    tab.page.locator("#comparison section").nth(1).get_by_role("link", name="Sun").click()
    expect(tab.page.locator("#found")).to_have_text("The sun is a star. It shines by day.")
    # At once after the document is closed, while the browser still goes back.
    tab.page.get_by_label("Compare with").evaluate("""select => {
        const choose = () => {
            select.value = "index=numbers";
            select.dispatchEvent(new Event("change", { bubbles: true }));
        };
        document.getElementById("reader").addEventListener("close", choose, { once: true });
        document.getElementById("reader-close").click();
    }""")
    expect(tab.page.locator("#comparison h2")).to_have_text(["papers", "numbers"])
    expect(tab.page.locator("#status")).to_contain_text("0 of 6 hits are in both")
    expect(tab.page.locator("#comparison .moved").first).to_have_text("only here")
    tab.page.go_back()
    expect(tab.page.locator("#comparison h2")).to_have_text(["Both", "Words"])
    tab.page.get_by_label("Compare with").select_option("nothing")
    expect(tab.page.locator("#comparison")).to_be_hidden()
    expect(tab.page.locator("#hits > li")).to_have_count(6)


@pytest.mark.slow
@in_browser
def test_without_writable_nothing_is_compared(open_tab: Callable[..., Tab], site: Site) -> None:
    with serving_here(create_app({"papers": str(site.folders["papers"])})) as port:
        tab = open_tab(Site(port, {}))
        tab.go("?q=moon&with=mode%3Dwords")
        expect(tab.page.locator(".sentence").first).to_be_visible()
        expect(tab.page.get_by_label("Compare with")).to_be_hidden()
        tab.page.goto("about:blank")


@pytest.mark.slow
@in_browser
def test_without_a_map_the_page_says_how_to_get_one(tab: Tab) -> None:
    tab.go("?q=moon")
    tab.page.get_by_role("link", name="Map").click()
    expect(tab.page.get_by_role("main")).to_contain_text("likewise map INDEX")
    expect(tab.page.locator("#hits")).to_be_hidden()
    tab.page.get_by_role("link", name="Search", exact=True).click()
    expect(tab.page.locator("#hits a.title").first).to_have_text("Moon")
    assert [line for line in tab.reported if "404" not in line] == []  # the browser reports that there is no map
    tab.reported.clear()


def ink(tab: Tab, x: float, y: float) -> list[int]:
    """The colour of the map's canvas at a place of the map, all of which is shown: 24 pixels are around it."""
    script = """([x, y]) => {
        const canvas = document.getElementById("map-canvas");
        const [width, height] = [canvas.clientWidth - 48, canvas.clientHeight - 48];
        const copy = document.createElement("canvas");
        const context = copy.getContext("2d", { willReadFrequently: true });
        context.drawImage(canvas, -(24 + x * width), -(24 + (1 - y) * height));
        return [...context.getImageData(0, 0, 1, 1).data];
    }"""
    return list(tab.page.evaluate(script, [x, y]))


def await_drawing(tab: Tab, before: int = 1) -> int:
    """Wait until the map was drawn more often than this, and return how often it was."""
    for _ in range(200):
        if (drawn := int(tab.page.locator("#map-canvas").get_attribute("data-drawn") or 0)) > before:
            return drawn
        tab.page.wait_for_timeout(25)
    raise AssertionError("the map is not drawn")


@in_browser
def test_the_map_shows_points_colours_and_the_hits_of_the_question(tab: Tab) -> None:
    tab.go("?view=map&index=numbers")
    expect(tab.page.locator("#map-regions button").first).to_have_text(re.compile("small · numbers"))
    expect(tab.page.locator("#map-size")).to_have_text("30 documents")
    await_drawing(tab)
    assert ink(tab, 0.2, 0.5)[3] > 100  # the thirteenth number
    assert ink(tab, 0.3, 0.6)[3] == 0  # between four numbers
    tab.page.locator("#question").fill("number 7 of many")
    expect(tab.page.locator("#map-documents a")).to_have_count(10)
    tab.page.wait_for_url(re.compile("q=number.7.of.many.*at_map="))  # the map shows the hits
    tab.page.locator("#map-colour").select_option("n")
    expect(tab.page.locator("#map-legend li").first).to_have_text("0 to 3")
    expect(tab.page.locator("#map-legend li")).to_have_count(8)
    tab.page.locator("#map-documents a").first.click()
    expect(tab.page.locator("#reader-body")).to_contain_text("of many.")
    tab.page.keyboard.press("Escape")
    tab.page.locator("#question").fill("")
    tab.page.get_by_role("button", name="Show all").click()
    await_drawing(tab)
    box = tab.page.locator("#map-canvas").bounding_box()
    assert box is not None
    tab.page.mouse.move(box["x"] + 24 + (box["width"] - 48) * 0.4, box["y"] + 24 + (box["height"] - 48) * 0.25)
    expect(tab.page.locator(".map-card").first).to_have_text("Number 20Number 20 of many.")
    tab.page.mouse.click(box["x"] + 24 + (box["width"] - 48) * 0.4, box["y"] + 24 + (box["height"] - 48) * 0.25)
    expect(tab.page.locator("#reader-title")).to_have_text("Number 20")


@pytest.mark.slow
@in_browser
def test_an_area_of_the_map_becomes_a_filter(tab: Tab) -> None:
    tab.go("?view=map&index=numbers")
    await_drawing(tab)
    box = tab.page.locator("#map-canvas").bounding_box()
    assert box is not None
    left, top = box["x"] + 24, box["y"] + 24
    width, height = box["width"] - 48, box["height"] - 48
    tab.page.get_by_role("button", name="Draw an area").click()
    corners = [(-0.01, 0.9), (0.3, 0.9), (0.3, 1.01), (-0.01, 1.01)]  # the two smallest numbers
    for at, (x, y) in enumerate(corners):
        tab.page.mouse.move(left + x * width, top + y * height, steps=4)
        if not at:
            tab.page.mouse.down()
    tab.page.mouse.up()
    expect(tab.page.locator("#map-listed-title")).to_have_text("The area: 2 documents")
    counts = tab.page.locator("#map-regions .count")
    expect(counts).to_have_text(["2 of 15", "0 of 15"])
    tab.page.locator("#question").fill("number")
    tab.page.get_by_role("link", name="Search in it").click()
    expect(tab.page.locator("#status")).to_contain_text("2 documents")
    assert sorted(tab.titles) == ["Number 0", "Number 1"]
    assert "area=" in tab.query
    tab.page.get_by_role("button", name="Remove the filter: an area of the map").click()
    expect(tab.page.locator("#hits > li")).to_have_count(10)
    tab.page.go_back()
    expect(tab.page.locator("#hits > li")).to_have_count(2)


@pytest.mark.slow
@in_browser
def test_the_map_is_moved_with_keys_and_buttons(tab: Tab) -> None:
    tab.go("?view=map&index=numbers")
    expect(tab.page.locator("#map-regions button")).to_have_count(2)
    drawn = await_drawing(tab)
    tab.page.locator("#map-canvas").focus()
    for key in ("+", "ArrowLeft", "ArrowDown", "-", "0"):
        tab.page.keyboard.press(key)
        drawn = await_drawing(tab, drawn)
    assert ink(tab, 0.2, 0.5)[3] > 100  # all of it is shown again
    for _ in range(8):
        tab.page.get_by_role("button", name="Zoom in").click()
        drawn = await_drawing(tab, drawn)
    canvas = "document.getElementById('map-canvas')"
    pixels = f"{canvas}.getContext('2d').getImageData(0, 0, {canvas}.width, {canvas}.height).data"
    assert tab.page.evaluate(f"{pixels}.some((value, i) => i % 4 === 3 && value)")  # around the nearest point
    tab.page.get_by_role("button", name="Show all").click()
    drawn = await_drawing(tab, drawn)
    tab.page.locator("#map-regions button").first.click()
    await_drawing(tab, drawn)
    # The region is a filter: its documents are listed, and the other points are dimmed.
    expect(tab.page.locator("#map-listed-title")).to_have_text("small · numbers: 18 documents")
    expect(tab.page.get_by_role("button", name="Remove the filter: region: small · numbers")).to_be_visible()
    tab.page.get_by_role("button", name="Show all").click()
    tab.page.wait_for_url(re.compile(r"named=small.*at_map=0\.500_0\.500_1\.000"))
    for _ in range(100):
        if ink(tab, 0.2, 1)[3] < 100 < ink(tab, 0.2, 0)[3]:
            break
        tab.page.wait_for_timeout(25)
    assert ink(tab, 0.2, 1)[3] < 100 < ink(tab, 0.2, 0)[3]
    expect(tab.page.locator(".map-tools").get_by_role("button")).to_have_text(["Draw an area", "+", "−", "Show all"])


@pytest.mark.slow
@in_browser
def test_the_map_says_what_the_list_says(tab: Tab) -> None:
    answer = _answer([{"uri": "n3", "why": {"weak": True}}, {"uri": "n4"}])
    tab.page.route("**/search", lambda route: route.fulfill(json=answer))
    tab.go("?view=map&index=numbers&q=x")
    expect(tab.page.locator("#map-documents li")).to_have_text(["1. Number 3weak match", "2. Number 4"])
    expect(tab.page.locator("#map-view #status")).to_have_text("All 2 documents, best first")
    expect(tab.page.locator("#map-view .unanswered")).to_have_count(0)
    answer["answered"] = False
    tab.page.locator("#question").fill("y")
    expect(tab.page.locator("#map-view .unanswered")).to_contain_text("Nothing here seems to answer this.")
    expect(tab.page.locator("#map-documents .weak")).to_have_count(0)
    tab.page.locator("#map-view #filters summary").first.click()
    tab.page.locator("#fields details[data-field=n]").get_by_label("from").fill("4")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#picks li")).to_have_text(["n from 4 ×"])
    for name, place in (("Search", "#search-view"), ("Map", "#map-view")):
        tab.page.get_by_role("link", name=name, exact=True).click()
        expect(tab.page.locator(f"{place} .unanswered")).to_be_visible()
        expect(tab.page.locator(f"{place} #filters")).to_be_visible()


@in_browser
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), pytest.param("dark", 320, marks=pytest.mark.slow)])
def test_a_map_hinders_nobody(
    open_tab: Callable[..., Tab], tmp_path: Path, module_encoder: Any, scheme: str, width: int
) -> None:
    folder = tmp_path / "papers.index"
    with Index.create(folder, model=module_encoder) as index:
        index.add(DOCUMENTS)
    places = np.array([[0, 0], [1, 0], [0, 1], [0.25, 0.75], [1, 1], [0.5, 0.5]], np.float32)
    regions = (Region(0.5, 0.5, 0, 6, ("sky", "bread")),)
    keep(folder, Map(tuple(document.uri for document in DOCUMENTS), places, regions))
    with serving_here(create_app({"papers": str(folder)})) as port:
        tab = open_tab(Site(port, {}), color_scheme=scheme)
        tab.page.set_viewport_size({"width": width, "height": 800})
        tab.go("?view=map&q=moon")
        expect(tab.page.locator("#map-documents li").first).to_have_text("1. Moon")
        expect(tab.page.get_by_role("img", name="Map of 6 documents")).to_be_visible()
        assert violations(tab.page) == []
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
        tab.page.goto("about:blank")


@pytest.mark.slow
@in_browser
def test_the_page_of_a_pdf_is_shown_above_its_text(
    open_tab: Callable[..., Tab], tmp_path: Path, likewise: Callable[..., Any]
) -> None:
    lines = ("A title page.", "A comet has a tail.")
    streams = [f"BT /F1 12 Tf 50 700 Td ({line}) Tj ET" for line in lines]
    pdf_files.write(tmp_path / "sky.pdf", *streams)
    os.utime(tmp_path / "sky.pdf", (1_700_000_000, 1_700_000_000))
    likewise("index", tmp_path / "sky.index", tmp_path / "sky.pdf")
    with serving_here(create_app({"sky": str(tmp_path / "sky.index")}, originals=True)) as port:
        tab = open_tab(Site(port, {}))
        tab.go("?q=comet")
        tab.page.locator("#hits a.title").first.press("Enter")
        picture = tab.page.get_by_role("img", name="Page 2. Its text is below.")
        expect(picture).to_have_js_property("naturalWidth", 1200)
        expect(tab.page.locator("figure.original")).to_contain_text("Page 2 of 2")
        assert "mark=" in str(picture.get_attribute("src"))
        tab.page.get_by_role("button", name="Previous page").press("Enter")
        expect(tab.page.get_by_role("img", name="Page 1. Its text is below.")).to_be_visible()
        original = tab.page.get_by_role("link", name="Open the original")
        expect(original).to_have_attribute("href", re.compile(r"original\?uri=.*sky\.pdf#page=2$"))
        assert violations(tab.page) == []
        tab.page.goto("about:blank")


@pytest.mark.slow
@in_browser
def test_a_source_opens_at_its_line_and_a_pdf_within_twelve_keys(
    open_tab: Callable[..., Tab], tmp_path: Path, likewise: Callable[..., Any]
) -> None:
    """From opening the page to the original, with the keyboard alone."""
    folder = tmp_path / "files"
    folder.mkdir()
    lines = [*(f"value_{n} = {n}" for n in range(400)), "def comet():", "    return 'a tail - and more'", "x = 1"]
    (folder / "sky.py").write_text("\n".join(lines))
    pdf_files.write(folder / "sky.pdf", "BT /F1 12 Tf 50 700 Td (A planet has moons.) Tj ET")
    for file in folder.iterdir():
        os.utime(file, (1_700_000_000, 1_700_000_000))
    likewise("index", tmp_path / "sky.index", folder)
    with serving_here(create_app({"sky": str(tmp_path / "sky.index")}, originals=True)) as port:
        tab = open_tab(Site(port, {}))
        tab.go("?q=comet+tail&mode=words")
        tab.page.locator("#hits a.title").first.click()
        with tab.page.context.expect_page() as opened:
            tab.page.get_by_role("link", name="Open the original").click()
        source = opened.value
        for _ in range(100):
            if source.evaluate("scrollY > 0"):
                break
            source.wait_for_timeout(25)
        assert "#:~:text=" in str(source.evaluate("performance.getEntriesByType('navigation')[0].name"))
        assert source.evaluate("document.documentElement.scrollHeight - scrollY") < 2 * 900  # the last of 403 lines

        tab.go("?mode=words")
        expect(tab.page.locator("#question")).to_be_focused()
        keys = [*"planet", "ArrowDown", "Enter"]
        for key in keys:
            if key == "ArrowDown":
                expect(tab.page.locator("#hits")).to_have_attribute("data-question", "planet")
            tab.page.keyboard.press(key)
        picture = tab.page.get_by_role("img", name="Page 1. Its text is below.")
        expect(picture).to_have_js_property("naturalWidth", 1200)
        assert len(keys) <= 12
        source.close()
        tab.page.goto("about:blank")


def violations(page: Page) -> list[tuple[str, ...]]:
    """Return what axe-core finds on a page, of any impact. Rules for contrast and target size are among its rules."""
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]})
    assert {"color-contrast", "target-size", "label"} & {each["id"] for each in found.response["passes"]}
    return [
        (each["id"], each["impact"], node["html"][:200], node["failureSummary"])
        for each in found.response["violations"]
        for node in each["nodes"]
    ]


@in_browser
@pytest.mark.parametrize(
    ("scheme", "width"),
    [pytest.param("light", 1280, marks=pytest.mark.slow), pytest.param("dark", 320, marks=pytest.mark.long)],
)
def test_nothing_hinders_people_with_disabilities(open_tab: Callable[..., Tab], scheme: str, width: int) -> None:
    """axe-core finds nothing, on every view. Its rules for text contrast and target size are among them."""
    tab = open_tab(color_scheme=scheme, reduced_motion="reduce")
    tab.page.set_viewport_size({"width": width, "height": 800})

    def check(view: str) -> None:
        assert (view, violations(tab.page)) == (view, [])

    tab.go()
    expect(tab.page.locator("#fields details").first).to_be_attached()
    check("start")
    tab.page.locator("#filters").evaluate("filters => { filters.open = true; }")
    tab.ask("the moon and bread")
    expect(tab.page.locator(".sentence").first).to_be_visible()
    tab.page.get_by_role("button", name="Why", exact=True).first.click()
    tab.page.locator("#where").fill("nothing = ")
    expect(tab.page.locator("#where-error")).not_to_be_empty()
    check("hits, why and an error")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.go("?q=the+moon+and+bread")  # no answer to a condition that was typed can replace the hits any more
    expect(tab.page.locator(".sentence").first).to_be_visible()
    tab.page.locator("#hits a.title").first.click()
    expect(tab.page.locator("#found")).to_be_visible()
    check("document")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.page.keyboard.press("Escape")
    tab.page.get_by_label("Compare with").select_option("Words")
    expect(tab.page.locator("#comparison li").first).to_be_visible()
    check("comparison")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.page.get_by_label("Compare with").select_option("nothing")
    tab.page.locator("#open-help").click()
    check("help")
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("link", name="Map").click()
    check("no map")
    tab.page.locator("#index").select_option("numbers")
    expect(tab.page.locator("#map-regions li")).to_have_count(2)
    check("map")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    paper = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    red = int(re.findall(r"\d+", paper)[0])
    assert (red > 200) == (scheme == "light")
    tab.page.locator("#index").select_option("All")
    expect(tab.page.locator("#hits .index").first).to_be_visible()  # until then the hits are dimmed
    check("all indexes")
    tab.ask("the moon and number 3")
    expect(tab.page.locator("#hits .index").first).to_be_visible()
    check("hits of all indexes")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.reported.clear()  # of the condition that was refused


def test_the_names_of_fields_are_those_of_filters() -> None:
    """The page flattens metadata as the stores do; the hostile document has the hard names."""
    source = (FOLDER / "hits.js").read_text()
    names = json.loads(re.search(r"COLUMNS = (\[.*\])", source)[1])  # type: ignore[index]
    assert names == ["uri", "title", "path", "format", "modified", "metadata"]
