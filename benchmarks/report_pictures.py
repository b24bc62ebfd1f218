"""Take the pictures of the report of the demo that docs/cli.md shows.

python benchmarks/report_pictures.py      # writes docs/images/report-*.webp

Needs Chromium and playwright.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

TARGET = Path(__file__).parent.parent / "docs" / "images"
SIZES = {"desktop": (1280, 900), "phone": (390, 844), "print": (794, 1123)}


def main() -> None:
    """Open the page in light, in dark and as it is printed."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        command = [sys.executable, "-m", "a1gm", "demo"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        chromium = playwright.chromium.launch(executable_path=browser)
        for device, (width, height) in SIZES.items():
            size = {"width": width, "height": height}
            for scheme in ("",) if device == "print" else ("light", "dark"):
                page = chromium.new_page(viewport=size, color_scheme=scheme or "light")
                if not scheme:
                    page.emulate_media(media="print")
                page.goto((Path(folder) / "demo-output" / "report.html").as_uri())
                name = "-".join(filter(None, ("report", device, scheme)))
                picture = Image.open(io.BytesIO(page.screenshot()))
                picture.save(TARGET / f"{name}.webp", quality=80, method=6)
                print(f"Wrote {TARGET / name}.webp.")
        chromium.close()


if __name__ == "__main__":
    main()
