"""The service worker: real builds put on a real server, one after the other, and a server that goes away."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import pytest
from builder import offline
from builder.server import Handler, Server
from playwright.sync_api import Error, expect

from .calculator_page import CalculatorPage
from .conftest import ROOT, serving, watching
from .watched import LOADED_MILLISECONDS, origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator

LATER = 3_000  # milliseconds after which a live page has registered a worker, if it does
# The registration and the caches of this copy of the site.
HERE = """
  const scope = new URL('.', location).href;
  const found = (await navigator.serviceWorker.getRegistrations()).find((one) => one.scope === scope);
  const names = (await caches.keys()).filter((name) => name.startsWith(`kv-calculator ${scope} `));
"""
# The worker of a build is at work, and neither another worker nor another cache is there.
AT_WORK = f"""async (build) => {{{HERE}
  return found?.active?.state === 'activated' && !found.installing && !found.waiting
    && names.length === 1 && names[0].endsWith(` ${{build}}`);
}}"""
NOTHING = f"async () => {{{HERE} return !found && !names.length; }}"
UPDATE = "async () => (await navigator.serviceWorker.getRegistration()).update()"


class HostHandler(Handler):
    """Notes what it answers; answers nothing while the host is down."""

    def parse_request(self) -> bool:
        parsed = super().parse_request()
        if self.server.down:
            self.close_connection = True
            return False
        return parsed

    def log_request(self, code="-", size="-"):
        self.server.answered.append((self.path, int(code)))


class Host(Server):
    """A server of one origin, on which builds are put at paths."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(HostHandler, directory=str(folder)))
        self.folder = folder
        self.down = False
        self.answered: list[tuple[str, int]] = []
        self.url = f"http://127.0.0.1:{self.server_port}/"

    def put(self, path: str, build: Path) -> str:
        """Puts a build at a path instead of what is there; its address."""
        place = self.folder / path
        new = place.with_name(f"new-{place.name}")
        new.symlink_to(build, target_is_directory=True)
        new.replace(place)
        return f"{self.url}{path}/"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path)
    with serving(host):
        yield host


def build_of(dist: Path) -> str:
    (build,) = re.findall(r'data-kv-build="(\w+)"', (dist / "index.html").read_text(encoding="utf-8"))
    return build


@pytest.fixture(scope="module")
def later(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a later build makes: the page's own files stand in another folder, the rest is as it was."""
    files = {
        path.relative_to(dist).as_posix(): path.read_bytes() for path in dist.rglob("*") if path.is_file()
    }
    kept = json.loads(files.pop(f"offline-{build_of(dist)}.json"))
    (app,) = (path.name for path in dist.glob("app-*"))

    def moved(text: str) -> str:
        return text.replace(app, "app-1a7e41a7e4")

    files = {moved(name): data for name, data in files.items()}
    files["app-1a7e41a7e4/style.css"] += b"h1 { font-style: italic; }"
    page = moved(files["index.html"].decode())
    files["index.html"] = page.replace(build_of(dist), "").encode()
    files["sw.js"] = (ROOT / "site/sw.js").read_bytes()
    offline.stamp(files, map(moved, kept))
    folder = tmp_path_factory.mktemp("later")
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


@pytest.fixture
def visit(browser: Browser, host: Host) -> Iterator[Callable[[str], CalculatorPage]]:
    """Opens pages of one browser that is watched, each until it is live."""
    with watching(browser, host.url.rstrip("/")) as watched:
        # What the browser says when the host is down, or refuses a worker that is not whole.
        watched.announce("ERR_EMPTY_RESPONSE|404")
        pages = iter([watched.page])

        def visit(url: str) -> CalculatorPage:
            page = next(pages, None) or watched.page.context.new_page()
            return CalculatorPage(page).open(url)

        yield visit


def until(page: CalculatorPage, question: str, *args: str) -> None:
    """Waits until the page answers yes."""
    deadline = time.monotonic() + LOADED_MILLISECONDS / 1000
    while not page.page.evaluate(question, *args):
        assert time.monotonic() < deadline, f"still not so: {question}"
        page.page.wait_for_timeout(50)


def build(page: CalculatorPage) -> str:
    return page.find("html").get_attribute("data-kv-build")


def reload(page: CalculatorPage) -> None:
    page.page.reload()
    page.wait_for("live")


def newer(page: CalculatorPage) -> Locator:
    """The note that another build is there."""
    return page.find("p.status").filter(has_text="New version").locator("#reload")


def test_after_the_first_visit_the_page_needs_no_network(visit, host, dist):
    page = visit(host.put("kv", dist))
    until(page, AT_WORK, build_of(dist))
    asked = Counter(path for path, _ in host.answered)
    assert asked["/kv/"] == 2  # by the browser, then by the worker
    assert asked["/kv/sw.js"] == 1
    # What the page has loaded is not loaded again.
    assert {count for path, count in asked.items() if path.endswith(".mjs")} == {1}
    host.down = True
    reload(page)
    assert page.number("per_rank.bytes_per_token") == 70_272
    linked = visit(f"{host.url}kv/?v=1&m=llama-3.1-8b&tp=8&lang=zh&theme=dark")
    assert linked.result()["scenario"]["tensor_parallel_size"] == 8
    assert linked.number("per_rank.bytes_per_token") == 2 * 32 * 1 * 128 * 2
    linked.type("num_layers", "16")
    assert linked.number("per_rank.bytes_per_token") == 2 * 16 * 1 * 128 * 2
    assert linked.drawn()["bars"]["glyphs"]
    assert visit(f"{host.url}kv/index.html").number("per_rank.bytes_per_token") == 70_272


def test_an_update_comes_whole_or_not_at_all(visit, host, dist, later, tmp_path):
    old, new = build_of(dist), build_of(later)
    site = host.put("kv", dist)
    page = visit(site)
    until(page, AT_WORK, old)
    # As a site is replaced, a file of the new one is missing.
    partly = shutil.copytree(later, tmp_path / "partly")
    next(partly.glob("app-*/worker.mjs")).unlink()
    host.put("kv", partly)
    page.page.evaluate(UPDATE)
    reload(page)
    assert build(page) == old
    until(page, AT_WORK, old)
    expect(newer(page)).to_be_hidden()
    # All of it is there: who opens the page gets it; who has the old one open hears of it and keeps that.
    host.put("kv", later)
    second = visit(site)
    assert build(second) == new
    expect(newer(page)).to_be_visible()
    expect(newer(second)).to_be_hidden()
    page.find("[data-kv-control=language] select").select_option("zh")
    expect(page.find("p.status")).to_contain_text("有新版本")
    expect(page.find("#reload")).to_have_text("重新加载")
    host.down = True
    assert build(visit(site)) == old
    host.down = False
    # The page of the other build can take the place of the last one of this build.
    for tab in page.page.context.pages:
        if tab != page.page:
            tab.close()
    page.find("#reload").click()
    page.find(f'html[data-kv-build="{new}"]').wait_for(state="attached")
    until(page, AT_WORK, new)
    host.down = True
    reload(page)
    assert build(page) == new
    assert page.number("per_rank.bytes_per_token") == 70_272


def test_copies_of_the_site_on_one_origin_do_not_touch_each_other(visit, host, dist, later, tmp_path):
    old, new = build_of(dist), build_of(later)
    for name, of in (("first", dist), ("second", later)):
        (shutil.copytree(of, tmp_path / name) / "inner").symlink_to(dist, target_is_directory=True)
    site = host.put("outer", tmp_path / "first")
    outer = visit(site)
    until(outer, AT_WORK, old)
    inner = visit(f"{site}inner/")
    until(inner, AT_WORK, old)
    host.put("outer", tmp_path / "second")
    reload(outer)
    until(outer, AT_WORK, new)
    until(inner, AT_WORK, old)
    # Without one of them, the other one remains, and nothing comes back.
    inner.open(f"{site}inner/?m=llama-3.1-8b&sw=off")
    until(inner, NOTHING)
    assert inner.number("per_rank.bytes_per_token") == 2 * 32 * 8 * 128 * 2
    inner.type("num_layers", "16")
    inner.frame.wait_for_url(re.compile("L=16.*sw=off"))
    assert inner.find("#notices").inner_text() == ""
    reload(inner)
    inner.page.wait_for_timeout(LATER)
    until(inner, NOTHING)
    until(outer, AT_WORK, new)


def test_the_switch_of_the_readme_removes_the_worker(visit, host, dist, tmp_path):
    page = visit(host.put("kv", dist))
    until(page, AT_WORK, build_of(dist))
    (switch,) = re.findall(
        r"```js\n(self\..*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    without = shutil.copytree(dist, tmp_path / "without")
    (without / "sw.js").write_text(switch, encoding="utf-8")
    host.put("kv", without)
    reload(page)
    until(page, "async () => !(await caches.keys()).length")
    assert page.number("per_rank.bytes_per_token") == 70_272
    host.down = True
    with pytest.raises(Error, match="ERR_EMPTY_RESPONSE"):
        page.page.reload()


def test_a_worker_for_which_there_is_no_room_leaves_nothing(visit, host, dist):
    site = host.put("kv", dist)
    page = visit(site)
    storage = page.page.context.new_cdp_session(page.page)
    storage.send("Storage.overrideQuotaForOrigin", {"origin": origin(site), "quotaSize": 2_000_000})
    begun = (f"/kv/offline-{build_of(dist)}.json", 200)
    while begun not in host.answered:
        page.page.wait_for_timeout(50)
    until(page, NOTHING)
    page.type("num_layers", "60")
    assert page.number("per_rank.bytes_per_token") == 60 * 1_152


def test_in_a_frame_of_another_origin_nothing_is_kept(browser, host, dist, site, tmp_path):
    framing = f'<!doctype html><link rel="icon" href="data:,"><iframe src="{site}"></iframe>'
    (tmp_path / "host.html").write_text(framing, encoding="utf-8")
    with watching(browser, origin(host.url), origin(site)) as watched:
        watched.page.goto(f"{host.url}host.html")
        frame = watched.page.query_selector("iframe").content_frame()
        page = CalculatorPage(watched.page, frame)
        page.wait_for("live")
        watched.page.wait_for_timeout(LATER)
        until(page, NOTHING)
