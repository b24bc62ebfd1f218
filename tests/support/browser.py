"""A headless Chromium, where there is one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from support.suite import missing, need

_NAMES = ("chromium", "chromium-browser", "google-chrome")


@contextmanager
def running_browser() -> Iterator[Any]:
    """Start the browser of this machine, or skip the test and say what is missing."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        missing("no chromium on this machine: apt-get install chromium")
    sync_api = need("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-background-networking"],
        )
        yield running
        running.close()


def listen(page: Any) -> tuple[list[str], list[str]]:
    """What a page says on the console, and what it asks of other machines."""
    words: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: words.append(message.text))
    page.on("pageerror", lambda error: words.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    return words, requests


def leaving(requests: list[str]) -> list[str]:
    """The requests that leave the machine."""
    return [url for url in requests if not url.startswith(("file:", "data:", "blob:"))]
