"""Take the pictures of the site and of the report that the documentation shows.

make docs && PYTHONPATH=tests python benchmarks/screenshots.py    # into docs/images

Needs Chromium. Each picture is a few dozen kilobytes: look at them before a commit.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from support.browser import running_browser

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "docs" / "images"
SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}


def main() -> None:
    """Open every page on every screen, in the light and in the dark."""
    with tempfile.TemporaryDirectory() as folder, running_browser() as browser:
        demo = [sys.executable, "-m", "a1gm", "demo", "--quiet"]
        subprocess.run(demo, cwd=folder, check=True)
        report = Path(folder) / "demo-output" / "report.html"
        pages = {"report": report, "site": ROOT / "site" / "index.html"}
        for screen, (width, height) in SCREENS.items():
            for scheme in ("light", "dark"):
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=scheme
                )
                tab = context.new_page()
                for name, path in pages.items():
                    tab.goto(path.as_uri())
                    tab.wait_for_timeout(300)
                    _keep(tab.screenshot(), f"{name}-{screen}-{scheme}")
                context.close()
        # Paper: the first page of A4 at 96 dots per inch, with its margins.
        context = browser.new_context(viewport={"width": 794, "height": 1123})
        tab = context.new_page()
        for name, path in pages.items():
            tab.goto(path.as_uri())
            tab.emulate_media(media="print")
            tab.add_style_tag(content="body { padding: 1.6cm !important; }")
            tab.wait_for_timeout(300)
            _keep(tab.screenshot(), f"{name}-print")


def _keep(picture: bytes, name: str) -> None:
    target = TARGET / f"{name}.webp"
    Image.open(io.BytesIO(picture)).save(target, quality=80, method=6)
    print(f"{target.relative_to(ROOT)}  {target.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
