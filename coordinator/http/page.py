"""The live page: all groups as ``GET /groups`` tells them, asked for again every second. One file, loads nothing.

Everything that comes from clients is put in as text, never as HTML, and the page may run no script but its own.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --muted: #888; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 70rem; padding: 0 1rem; }
header { display: flex; justify-content: space-between; align-items: baseline; }
h1 { font-size: 1.2rem; } h2 { font-size: 1.05rem; margin: 0 0 .4rem; }
section { border: 1px solid var(--line); border-radius: .5rem; padding: .8rem 1rem; margin: 1rem 0; }
.facts, #status { color: var(--muted); } .facts b { color: CanvasText; }
table { border-collapse: collapse; width: 100%; margin: .6rem 0; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { text-align: left; padding: .15rem .8rem .15rem 0; border-top: 1px solid var(--line); vertical-align: top; }
th { color: var(--muted); font-weight: 500; border-top: 0; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
"""

_SCRIPT = """
"use strict";
const make = (tag, text, kind) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  return node;
};
const table = (caption, columns, rows) => {
  const made = make("table");
  made.append(make("caption", caption));
  const head = made.createTHead().insertRow();
  for (const [name, kind] of columns) {
    const cell = make("th", name, kind);
    cell.scope = "col";
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value, index) => line.append(make("td", value ?? "-", columns[index][1])));
  }
  return made;
};
const owned = assignment => assignment === null ? "not readable" :
  Object.entries(assignment).map(([topic, numbers]) => `${topic}: ${numbers.join(", ")}`).join("; ") || "nothing";
const ago = ms => ms < 1000 ? `${ms} ms ago` : ms < 60000 ? `${Math.round(ms / 1000)} s ago`
  : `${Math.round(ms / 60000)} min ago`;
const shown = (group, now) => {
  const section = make("section");
  section.append(make("h2", group.group_id));
  const facts = make("p", undefined, "facts");
  const epoch = group.type === "consumer" ? "epoch" : "generation";
  const values = {type: group.type, state: group.state, [epoch]: group.generation, protocol: group.protocol ?? "-",
    members: group.members.length, lag: group.lag};
  for (const [name, value] of Object.entries(values)) facts.append(`${name} `, make("b", value), " \\u00a0 ");
  section.append(facts);
  if (group.members.length) section.append(table("Members",
    [["member id"], ["instance"], ["client"], ["host"], ["partitions"]],
    group.members.map(each => [each.member_id + (each.member_id === group.leader ? " (leader)" : ""),
      each.instance_id, each.client_id, each.client_host, owned(each.assignment)])));
  if (group.partitions.length) section.append(table("Lag",
    [["topic"], ["partition", "number"], ["committed", "number"], ["end", "number"], ["lag", "number"], ["owner"]],
    group.partitions.map(each => [each.topic, each.partition, each.committed, each.end, each.lag, each.member_id])));
  section.append(table("History, newest first",
    [["when"], ["from"], ["to"], [epoch, "number"], ["members", "number"], ["why"]],
    group.history.slice(-20).reverse().map(each => [ago(now - each.at_ms), each.before, each.after, each.generation,
      each.members, each.reason])));
  return section;
};
const update = async () => {
  const status = document.getElementById("status");
  try {
    const answer = await fetch("/groups");
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    const {clock, groups} = await answer.json();
    const sections = groups.map(group => shown(group, clock.now_ms));
    document.getElementById("groups").replaceChildren(...(sections.length ? sections : [make("p", "No group yet.")]));
    status.textContent = clock.is_frozen ? "live; the clock is frozen" : "live";
  } catch (problem) {
    status.textContent = `not live: ${problem.message}`;
  }
  setTimeout(update, 1000);
};
update();
"""


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


HTML = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>loadwise coordinator</title>
<style>{_STYLE}</style>
<header><h1>Groups</h1><span id="status" role="status">connecting</span></header>
<main id="groups"></main>
<noscript>This page needs JavaScript; the same is at <a href="/groups">/groups</a> as JSON.</noscript>
<script>{_SCRIPT}</script>
</html>
"""
"""The page."""

SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src {_hash(_SCRIPT)}",
        f"style-src {_hash(_STYLE)}",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""Its Content-Security-Policy: its own script and style, its own server, and nothing else."""
