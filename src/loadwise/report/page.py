"""The frame of every report: one self-contained HTML page that loads nothing and follows the reader's dark mode."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6575; --paper: #ffffff; --card: #f6f7f9; --rule: #dfe3e8;
  --bar: #2563c9; --good: #17875a; --bad: #c0392b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #9aa5b5; --paper: #12161c; --card: #1a2028;
  --rule: #2d3541; --bar: #6ea3f7; --good: #4cc38f; --bad: #f07565; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1220px; margin: 0 auto; padding: 36px 24px 64px; }
h1 { font-size: 27px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 18px; margin: 40px 0 10px; }
p { margin: 6px 0; max-width: 85ch; }
.lead { color: var(--soft); }
.panels { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 480px), 1fr)); gap: 18px; }
figure { margin: 0; padding: 14px 16px 8px; background: var(--card); border: 1px solid var(--rule);
  border-radius: 10px; }
figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 16px; margin-bottom: 4px; }
figcaption b { font-size: 16px; }
figcaption span { color: var(--soft); }
svg { display: block; width: 100%; height: auto; }
svg text { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 8px 9px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; font-size: 13px; color: var(--soft); vertical-align: bottom; line-height: 1.25; }
th:first-child, td:first-child { text-align: left; }
td:first-child { font-weight: 600; }
small { color: var(--soft); font-weight: 400; font-size: 12px; margin-left: 4px; }
th small { margin: 0; }
.best { color: var(--good); font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; max-width: 100ch; margin: 10px 0;
  font-size: 14px; }
dt { font-weight: 600; } dd { margin: 0; color: var(--soft); }
@media (max-width: 640px) { dl { grid-template-columns: 1fr; } dd { margin-bottom: 8px; } }
@media (max-width: 640px) {
  .stacked thead { display: none; }
  .stacked, .stacked tbody, .stacked tr { display: block; }
  .stacked tr { padding: 8px 0; border-bottom: 1px solid var(--rule); }
  .stacked td, .stacked td:first-child { display: flex; justify-content: space-between; gap: 16px; padding: 2px 0;
    border: 0; text-align: right; white-space: normal; }
  .stacked td::before { content: attr(data-name); color: var(--soft); font-weight: 400; text-align: left; }
}
.warning { color: var(--bad); }
footer { margin-top: 40px; color: var(--soft); font-size: 13px; }
"""


def document(title: str, body: Iterable[str], *, style: str = "") -> str:
    """A whole page; ``body`` is HTML, ``style`` more CSS."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n<main>",
        *body,
        "</main>\n</body>\n</html>\n",
    ]
    return "\n".join(parts)


def table(heads: Iterable[str], rows: Iterable[str]) -> str:
    """A table whose cells stand below each other on a narrow screen. Heads and rows (``<tr>``) are HTML."""
    names = list(heads)
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "\n".join(
        _with_names(row, [re.sub("<[^>]+>", " ", name.replace("-<br>", "")) for name in names]) for row in rows
    )
    return (
        '<div class="scroll"><table class="stacked">'
        f"<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>"
    )


def _with_names(row: str, names: Iterable[str]) -> str:
    """The row with the name of its column in every cell."""
    left = iter(names)
    return re.sub("<td", lambda _: f'<td data-name="{next(left)}"', row)


def definitions(meanings: Iterable[tuple[str, str]]) -> str:
    """A list of words and what they mean, as plain text."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in meanings) + "</dl>"
