"""What the documentation's pages need to become a site: a hook of mkdocs, see mkdocs.yml.

On a code host the pages link to source files; the site has no source, so that there such a link is its text, with the
file's path as a tooltip.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[([^\]]*)\]\(([^()\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Called by mkdocs with the text of each page."""
    return without_links_to_source(markdown, page.file.src_uri)


def without_links_to_source(text: str, page: str) -> str:
    """``text`` of ``page``, a path below docs, without the links that lead out of docs."""
    directory = posixpath.dirname(page)

    def replaced(match: re.Match[str]) -> str:
        label, link = match.groups()
        path = posixpath.normpath(posixpath.join("docs", directory, link.partition("#")[0]))
        if "://" in link or link.startswith("#") or path.startswith("docs/"):
            return match[0]
        return f'<abbr title="{path}">{label}</abbr>'

    parts = _FENCE.split(text)
    return "".join(part if part.startswith("```") else _LINK.sub(replaced, part) for part in parts)
