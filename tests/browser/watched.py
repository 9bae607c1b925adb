"""A page that remembers everything it did: requests, console lines, errors."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

LOADED_MILLISECONDS = 60_000  # a busy machine is no failure


def origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@dataclass
class Watched:
    """A page under watch; `verify` fails on whatever nobody announced."""

    page: Page
    origins: set[str]
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    announced: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, context: BrowserContext, *origins: str) -> Watched:
        """A new page of `context` that may ask only `origins`."""
        watched = cls(context.new_page(), set(origins))
        # The context hears frames and workers too.
        context.on("request", lambda request: watched.requests.append(request.url))
        context.on("requestfailed", watched._failed)
        context.on("console", watched._console)
        context.on("weberror", lambda error: watched.errors.append(f"page error: {error.error}"))
        context.on("dialog", watched._dialog)
        return watched

    def announce(self, pattern: str) -> None:
        """Errors that match `pattern` are what this test provokes."""
        self.announced.append(pattern)

    def third_parties(self) -> list[str]:
        """Requests that left the page's own origins."""
        inside = ("data:", "blob:")
        return [
            url for url in self.requests if not url.startswith(inside) and origin(url) not in self.origins
        ]

    def verify(self) -> None:
        """Everything stayed on the page's own origins, and nothing complained."""
        strangers = self.third_parties()
        surprises = [
            error for error in self.errors if not any(re.search(known, error) for known in self.announced)
        ]
        # A page that many tests share charges each test only with its own.
        self.requests.clear()
        self.errors.clear()
        assert not strangers, "asked third parties: " + ", ".join(strangers)
        assert not surprises, "complained: " + "\n".join(surprises)

    def _failed(self, request) -> None:
        # A page that is left gives up what it was loading.
        if request.failure != "net::ERR_ABORTED":
            self.errors.append(f"request: {request.url} {request.failure}")

    def _console(self, message) -> None:
        if message.type in {"error", "warning", "assert"}:
            self.errors.append(f"console {message.type}: {message.text} ({message.location['url']})")

    def _dialog(self, dialog) -> None:
        self.errors.append(f"dialog: {dialog.message}")
        dialog.dismiss()
