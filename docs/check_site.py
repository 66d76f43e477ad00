"""Check a built site: every link within it leads somewhere, and no page loads anything from another host.

``python docs/check_site.py build/docs`` prints what is wrong, one line each, and fails if anything is.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, unlike the href of an <a>, which a reader has to click.
LOADED = {*((tag, "src") for tag in ("script", "img", "iframe", "source", "video", "audio", "embed")), ("object", "data")}
FETCHING_RELATIONS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
CSS_URL = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Page(HTMLParser):
    """The ids of a page, the addresses that it links to, and those that it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.is_style = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value is not None}
        self.ids.update(found[name] for name in ("id", "name") if name in found)
        self.is_style = tag == "style"
        self.loads += [value for name, value in found.items() if (tag, name) in LOADED]
        self.loads += [candidate.split()[0] for candidate in found.get("srcset", "").split(",") if candidate.strip()]
        self.loads += css_addresses(found.get("style", ""))
        if tag == "link" and FETCHING_RELATIONS & set(found.get("rel", "").split()):
            self.loads.append(found.get("href", ""))
        elif tag in ("a", "link") and "href" in found:
            self.links.append(found["href"])

    def handle_data(self, data: str) -> None:
        if self.is_style:
            self.loads += css_addresses(data)

    def handle_endtag(self, tag: str) -> None:
        self.is_style = False


def css_addresses(css: str) -> list[str]:
    return [first or second for first, second in CSS_URL.findall(css)]


def is_elsewhere(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def problems_of(site: Path) -> Iterator[str]:
    # Below _static are templates of the theme, which are not pages.
    found = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]
    pages = {path.resolve(): Page(path) for path in found}
    if not pages:
        yield f"{site} has no pages"
    for path, page in pages.items():
        here = path.relative_to(site.resolve())
        yield from (f"{here} loads {address} from another host" for address in page.loads if is_elsewhere(address))
        for address in [*page.links, *page.loads]:
            if is_elsewhere(address) or address.startswith("data:"):
                continue
            parts = urlsplit(address)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                yield f"{here} links to {address}, which does not exist"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].ids:
                yield f"{here} links to {address}: the page has no such anchor"
    for path in sorted(site.rglob("*.css")):
        for address in css_addresses(path.read_text(encoding="utf-8")):
            if is_elsewhere(address):
                yield f"{path.relative_to(site)} loads {address} from another host"


def main(site: Path) -> int:
    problems = list(problems_of(site))
    print("\n".join(problems) or "links: fine, and nothing is loaded from another host")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
