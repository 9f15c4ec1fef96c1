"""Checks for the tests of pages: a page is one file and, if there is a real browser, is drawn in it
without an error."""
import html.parser
import json
import os
import re
import shutil
import subprocess
import tempfile

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))), None)


class Page(html.parser.HTMLParser):
    """A parsed page: its title, headings and other texts; each element with its attributes."""
    EMPTY = {"meta", "link", "br", "img", "input", "hr"}

    def __init__(self, path):
        super().__init__()
        with open(path, encoding="utf-8") as file:
            self.source = file.read()
        self.open, self.elements, self.texts, self.unclosed, self.script, self.data = [], [], [], [], "", None
        self.feed(self.source)
        self.close()
        self.unclosed += self.open

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.unclosed.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            if ("script", {"type": "application/json", "id": "data"}) == self.elements[-1]:
                self.data = json.loads(data)
            else:
                self.script += data
        elif self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def loads(self):
        """The addresses that the page would load from elsewhere. SVG's namespace is not one."""
        attributes = [value for _, attrs in self.elements for name, value in attrs.items() if name in ("src", "href", "action", "data", "poster", "srcset")]
        words = re.findall(r"@import|\burl\((?!#)|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(", re.sub(r"url\(#\$\{?|`url\(#", "", self.source))
        addresses = [found for found in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", self.script + self.source.split("<body", 1)[0]) if "www.w3.org/2000/svg" not in found]
        return attributes + words + addresses


# A page in a frame, because a browser's window is at least 500 pixels wide; then, instead of both,
# the page's elements. What is compared side by side says where it stands.
FRAME = """<iframe width="{width}" height="1200" src="{page}"></iframe><script>onload = () => setTimeout(() => {{
    for (const part of frames[0].document.querySelectorAll(".compared > *")) part.dataset.left = Math.round(part.getBoundingClientRect().left);
    document.replaceChild(document.importNode(frames[0].document.documentElement, true), document.documentElement);
}}, 19000)</script>"""


def drawn(path, width=1200):
    """The page's elements after its scripts have run, as text; None without a browser."""
    if not BROWSER:
        return None
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        with open(f"{profile}/frame.html", "w", encoding="utf-8") as file:
            file.write(FRAME.format(width=width, page="file://" + os.path.abspath(path)))
        done = subprocess.run([BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", "--virtual-time-budget=20000", "--allow-file-access-from-files",
                               "--window-size=1400,1300", "--dump-dom", f"file://{profile}/frame.html"], capture_output=True, text=True, timeout=300, check=False)
    return done.stdout


def attribute(dom, name):
    found = re.search(rf'{name}="([^"]*)"', dom)
    return found.group(1) if found else None
