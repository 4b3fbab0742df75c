"""Writes the generated reference pages while the site is built, and shows transcripts plainly.

Each page is made by one function named in `docs/gen/pages.py`, from what the program itself says
of its policies, commands and API. Nothing is written into the source tree.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

_TRANSCRIPT = re.compile(r"^(\s*`{3,}console) (exec|scenario)$", re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Say below every page which version it describes, and above it where the sources are.

    A site that publishes the pages names its repository in MOORAGE_SOURCE_URL.
    """
    config.copyright = f"Moorage {version('moorage')}"
    if source := os.environ.get("MOORAGE_SOURCE_URL"):
        config.repo_url = source
        config.repo_name = "Source"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add one file per generated page."""
    docs = str(Path(__file__).parents[1])
    if docs not in sys.path:
        sys.path.insert(0, docs)
    from gen.pages import PAGES

    for address, make in PAGES.items():
        files.append(File.generated(config, address, content=make()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Drop the words for the tests from fences: `exec`, and `scenario` for a test of its own."""
    del page, config, files
    # Within a longer fence the word is being explained, and stays.
    parts = re.split(r"(^````.*?^````$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(
        part if part.startswith("````") else _TRANSCRIPT.sub(r"\1", part) for part in parts
    )
