"""A quiet file server on this machine; like static hosts, it packs text and knows what never changes."""

from __future__ import annotations

import gzip
import io
import re
import sys
from functools import lru_cache, partial
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

TEXT = (".css", ".html", ".js", ".json", ".mjs", ".svg")  # that a host packs on its way
HASHED = re.compile(r"-[0-9a-f]{10}[./]")


class Handler(SimpleHTTPRequestHandler):
    """Serves files. The types are fixed, whatever the machine's own table says."""

    protocol_version = "HTTP/1.1"
    extensions_map = {  # noqa: RUF012 - the base class's attribute
        "": "application/octet-stream",
        ".css": "text/css; charset=utf-8",
        ".html": "text/html; charset=utf-8",
        ".ico": "image/x-icon",
        ".js": "text/javascript; charset=utf-8",
        ".json": "application/json",
        ".mjs": "text/javascript; charset=utf-8",
        ".png": "image/png",
        ".svg": "image/svg+xml",
        ".wasm": "application/wasm",
        ".webmanifest": "application/manifest+json",
        ".zip": "application/zip",
    }

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """Answers with a file, or an error; text is packed for who can unpack it."""
        path = Path(self.translate_path(self.path))
        if path.is_dir() and self.path.partition("?")[0].endswith("/"):
            path /= "index.html"
        if (
            path.suffix not in TEXT
            or not path.is_file()
            or "gzip" not in self.headers.get("Accept-Encoding", "")
        ):
            return super().send_head()
        packed = _packed(path, path.stat().st_mtime_ns)
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(packed)))
        self.send_header("Last-Modified", self.date_time_string(path.stat().st_mtime))
        self.end_headers()
        return io.BytesIO(packed)

    def send_response(self, code: int, message: str | None = None) -> None:
        """Remembers the code."""
        self.code = code
        super().send_response(code, message)

    def end_headers(self) -> None:
        """Lets the browser keep what is named by its hash; for the rest it must ask, and sees a new build."""
        kept = self.code == HTTPStatus.OK and HASHED.search(self.path)
        self.send_header("Cache-Control", "max-age=31536000, immutable" if kept else "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Says nothing."""


@lru_cache(256)
def _packed(path: Path, mtime: int) -> bytes:  # noqa: ARG001 - another time is another file
    return gzip.compress(path.read_bytes(), 6, mtime=0)


class Server(ThreadingHTTPServer):
    """One thread per connection; a browser that leaves early is no error."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Reports everything but closed connections."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def make_server(directory: Path, port: int = 0) -> Server:
    """A server for `directory` on 127.0.0.1; port 0 takes a free one, `server_port` says which.

    Raises:
        OSError: the port is taken.
    """
    return Server(("127.0.0.1", port), partial(Handler, directory=str(directory)))
