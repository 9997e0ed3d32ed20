"""A real browser without a screen: pictures of pages, and what stands in them once they are shown."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def browser() -> str:
    """The browser's program, or a skip that says what is missing."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("needs a browser: no chromium is installed")
    return found


def _run(profile: Path, *options: str) -> bytes:
    done = subprocess.run(
        [
            browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--no-first-run",
            "--disable-background-networking", "--virtual-time-budget=4000", f"--user-data-dir={profile}", *options,
        ],
        capture_output=True,
        timeout=180,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2_000:]
    return done.stdout


def screenshot(page: Path, out: Path, width: int, height: int) -> tuple[int, int]:
    """Takes a picture of the page's upper part; its size in pixels."""
    _run(out.parent / "profile", f"--window-size={width},{height}", f"--screenshot={out}", page.resolve().as_uri())
    return struct.unpack(">II", out.read_bytes()[16:24])


def dom(page: Path, profile: Path) -> str:
    """The page's elements after scripts, if there were any, have run."""
    return _run(profile, "--dump-dom", page.resolve().as_uri()).decode()


def printed(page: Path, out: Path) -> bytes:
    """The page as a printer would get it, a PDF."""
    _run(out.parent / "profile", "--no-pdf-header-footer", f"--print-to-pdf={out}", page.resolve().as_uri())
    return out.read_bytes()


def darkness(png: Path) -> list[float]:
    """Of each tenth of the picture's height, the share of dots that are not white."""
    from matplotlib.image import imread

    dots = imread(png)[:, :, :3].min(axis=2)
    lines = len(dots) // 10
    return [float((dots[at * lines : (at + 1) * lines] < 0.9).mean()) for at in range(10)]
