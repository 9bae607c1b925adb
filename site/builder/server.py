"""A quiet file server on this machine alone, with the types that a module worker insists on."""

from __future__ import annotations

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


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

    def end_headers(self) -> None:
        """Lets the browser keep files but ask whether they changed: a new build is seen at once."""
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Says nothing."""


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
