"""What the server says of files besides their content."""

import gzip
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from builder.server import make_server

from tests.browser.conftest import serving

PAGE = "<!doctype html>" + "text " * 500


@pytest.fixture
def url(tmp_path):
    (tmp_path / "index.html").write_text(PAGE, encoding="utf-8")
    (tmp_path / "app-0123456789").mkdir()
    (tmp_path / "app-0123456789/page.mjs").write_text("export const text = 'é';", encoding="utf-8")
    (tmp_path / "snapshot-0123456789.zst").write_bytes(bytes(range(256)))
    with serving(make_server(tmp_path)) as address:
        yield address


def get(url, **headers):
    with urlopen(Request(url, headers=headers)) as response:
        return response.headers, response.read()


def test_text_is_packed_for_who_asks(url):
    headers, body = get(url, **{"Accept-Encoding": "gzip, br"})
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert int(headers["Content-Length"]) == len(body) < len(PAGE)
    assert gzip.decompress(body).decode() == PAGE
    headers, body = get(url)
    assert headers["Content-Encoding"] is None
    assert body.decode() == PAGE


def test_what_is_packed_already_is_sent_as_it_is(url):
    headers, body = get(f"{url}snapshot-0123456789.zst", **{"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] is None
    assert body == bytes(range(256))


def test_only_names_with_a_hash_may_be_kept(url):
    for name in ("app-0123456789/page.mjs", "snapshot-0123456789.zst"):
        assert "immutable" in get(f"{url}{name}")[0]["Cache-Control"]
        assert "immutable" in get(f"{url}{name}", **{"Accept-Encoding": "gzip"})[0]["Cache-Control"]
    for name in ("", "index.html"):
        assert get(f"{url}{name}", **{"Accept-Encoding": "gzip"})[0]["Cache-Control"] == "no-cache"
    with pytest.raises(HTTPError) as missing:
        get(f"{url}app-0123456789/gone.mjs")
    assert missing.value.code == 404
    assert missing.value.headers["Cache-Control"] == "no-cache"
    missing.value.close()
