"use strict";
// The live page of all groups. It asks /groups every second, and remembers what it was told: a rate is the change over
// the last seconds, and each member has a bar of its lag for every one of them.

const KEPT = 120; // seconds of history
const RATE_OVER_MS = 15000; // longer than consumers wait between two commits
const SVG = "http://www.w3.org/2000/svg";
const samples = new Map(); // group id -> [{atMs, ends, committed, lag}], oldest first; maps by "topic-partition"
const opened = new Set(); // tables that the reader has opened

const make = (tag, text, kind) => {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (kind) node.className = kind;
  return node;
};
const number = value => value === null || value === undefined ? "-" : Math.round(value).toLocaleString("en");
const keyOf = each => `${each.topic}-${each.partition}`;

// [0, 1, 2, 5] is "0 to 2, 5".
const ranges = numbers => {
  const parts = [];
  for (const each of [...numbers].sort((a, b) => a - b)) {
    const last = parts[parts.length - 1];
    if (last && each === last[1] + 1) last[1] = each;
    else parts.push([each, each]);
  }
  return parts.map(([from, to]) => from === to ? `${from}` : to === from + 1 ? `${from}, ${to}` : `${from} to ${to}`).join(", ");
};

const remember = (groups, nowMs) => {
  for (const known of [...samples.keys()]) if (!groups.some(group => group.group_id === known)) samples.delete(known);
  for (const group of groups) {
    const ends = new Map(), committed = new Map(), lag = new Map();
    for (const each of group.partitions) {
      ends.set(keyOf(each), each.end);
      committed.set(keyOf(each), each.committed);
      if (each.member_id !== null) lag.set(each.member_id, (lag.get(each.member_id) ?? 0) + (each.lag ?? 0));
    }
    const kept = samples.get(group.group_id) ?? [];
    kept.push({atMs: nowMs, ends, committed, lag});
    samples.set(group.group_id, kept.slice(-KEPT));
  }
};

// Records in a second over the partitions, by one of the sample's maps; null until there are two samples.
const rate = (groupId, partitions, which) => {
  const kept = samples.get(groupId);
  const last = kept[kept.length - 1];
  const first = kept.find(sample => last.atMs - sample.atMs <= RATE_OVER_MS);
  if (first === last || last.atMs === first.atMs) return null;
  let change = 0;
  for (const each of partitions) {
    const from = first[which].get(keyOf(each)), to = last[which].get(keyOf(each));
    if (typeof from === "number" && typeof to === "number" && to > from) change += to - from;
  }
  return change * 1000 / (last.atMs - first.atMs);
};

const drawing = (kind, width, height, label) => {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", kind);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  return svg;
};
const bar = (svg, x, y, width, height, kind) => {
  const rect = document.createElementNS(SVG, "rect");
  for (const [name, value] of Object.entries({x, y, width, height})) rect.setAttribute(name, Math.max(value, 0));
  if (kind) rect.setAttribute("class", kind);
  svg.append(rect);
};

const table = (name, caption, columns, rows) => {
  const details = make("details");
  details.open = opened.has(name);
  details.addEventListener("toggle", () => details.open ? opened.add(name) : opened.delete(name));
  details.append(make("summary", caption));
  const made = make("table");
  const head = made.createTHead().insertRow();
  for (const [title, kind] of columns) {
    const cell = make("th", title, kind);
    cell.scope = "col";
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value, index) => line.append(make("td", value ?? "-", columns[index][1])));
  }
  const scroll = make("div", undefined, "scroll");
  scroll.append(made);
  details.append(scroll);
  return details;
};

// A short name for each member: what its user called it, numbered where several have the same name.
const names = members => {
  const called = each => each.instance_id ?? (each.client_id || each.member_id);
  const shared = new Map();
  for (const each of members) shared.set(called(each), (shared.get(called(each)) ?? 0) + 1);
  const seen = new Map(), found = new Map();
  for (const each of [...members].sort((a, b) => a.member_id < b.member_id ? -1 : 1)) {
    const name = called(each);
    seen.set(name, (seen.get(name) ?? 0) + 1);
    found.set(each.member_id, shared.get(name) > 1 ? `${name} #${seen.get(name)}` : name);
  }
  return found;
};

const owned = assignment => assignment === null ? "an assignment that is not Kafka's" :
  Object.entries(assignment).filter(([, numbers]) => numbers.length).map(([topic, numbers]) => `${topic}: ${ranges(numbers)}`)
    .join("; ") || "nothing";

const row = (group, member, name, most) => {
  const mine = group.partitions.filter(each => each.member_id === member.member_id);
  const lag = mine.reduce((sum, each) => sum + (each.lag ?? 0), 0);
  const arrives = rate(group.group_id, mine, "ends"), processed = rate(group.group_id, mine, "committed");
  const kept = samples.get(group.group_id);
  const first = kept.find(sample => kept[kept.length - 1].atMs - sample.atMs <= RATE_OVER_MS);
  const behind = kept.length > 2 && lag > (first.lag.get(member.member_id) ?? lag) && lag > (arrives ?? 0);
  const line = make("div", undefined, "member");
  const who = make("div", undefined, "name");
  who.append(make("b", name), make("small", owned(member.assignment)));
  if (member.member_id === group.leader) who.append(make("small", "leader"));
  who.title = `${member.member_id} from ${member.client_host}`;
  const numbers = make("div", undefined, "numbers");
  numbers.append(make("b", `lag ${number(lag)}`));
  const rates = arrives === null ? "rates follow" : `${number(arrives)}/s arrive, ${number(processed)}/s processed`;
  numbers.append(make("small", rates));
  const share = drawing("share", 100, 12, `lag ${number(lag)} of at most ${number(most)}`);
  bar(share, 0, 0, 100, 12, "all");
  bar(share, 0, 0, most ? 100 * lag / most : 0, 12, behind ? "behind" : "");
  const past = drawing("history", KEPT, 34, "lag over the last two minutes");
  const highest = Math.max(1, ...kept.flatMap(sample => [...sample.lag.values()]));
  kept.forEach((sample, index) => {
    const height = 34 * (sample.lag.get(member.member_id) ?? 0) / highest;
    bar(past, KEPT - kept.length + index, 34 - height, 0.8, height, behind ? "behind" : "");
  });
  line.append(who, numbers, share, past);
  return line;
};

const ago = ms => ms < 1000 ? `${ms} ms ago` : ms < 60000 ? `${Math.round(ms / 1000)} s ago`
  : `${Math.round(ms / 60000)} min ago`;

const shown = (group, nowMs) => {
  const section = make("section");
  section.append(make("h2", group.group_id));
  const facts = make("p", undefined, "facts");
  const epoch = group.type === "consumer" ? "epoch" : "generation";
  const values = {type: group.type, state: group.state, [epoch]: number(group.generation), protocol: group.protocol ?? "-",
    members: number(group.members.length), lag: number(group.lag)};
  for (const [name, value] of Object.entries(values)) facts.append(`${name} `, make("b", value), " \u00a0 ");
  section.append(facts);
  const called = names(group.members);
  const lags = new Map(group.members.map(each => [each.member_id, 0]));
  for (const each of group.partitions) if (lags.has(each.member_id)) lags.set(each.member_id, lags.get(each.member_id) + (each.lag ?? 0));
  const most = Math.max(0, ...lags.values());
  const inOrder = [...group.members].sort((a, b) => called.get(a.member_id).localeCompare(called.get(b.member_id), "en", {numeric: true}));
  for (const member of inOrder) section.append(row(group, member, called.get(member.member_id), most));
  if (group.partitions.length) section.append(table(`${group.group_id} partitions`, `Partitions (${number(group.partitions.length)})`,
    [["topic", "text"], ["partition"], ["committed"], ["end"], ["lag"], ["owner", "text"]],
    group.partitions.map(each => [each.topic, each.partition, number(each.committed), number(each.end), number(each.lag),
      called.get(each.member_id)])));
  section.append(table(`${group.group_id} history`, "History, newest first",
    [["when", "text"], ["from", "text"], ["to", "text"], [epoch], ["members"], ["why", "text wide"]],
    group.history.slice(-20).reverse().map(each => [ago(nowMs - each.at_ms), each.before, each.after, number(each.generation),
      number(each.members), each.reason])));
  return section;
};

const digest = groups => {
  const box = make("div", undefined, "digest");
  const sum = which => {
    const rates = groups.map(group => rate(group.group_id, group.partitions, which));
    return rates.some(each => each === null) ? null : rates.reduce((a, b) => a + b, 0);
  };
  const facts = [["groups", groups.length], ["members", groups.reduce((all, group) => all + group.members.length, 0)],
    ["lag", groups.reduce((all, group) => all + group.lag, 0)], ["arrive a second", sum("ends")], ["processed a second", sum("committed")]];
  for (const [name, value] of facts) {
    const card = make("div");
    card.append(make("b", number(value)), make("span", name));
    box.append(card);
  }
  return box;
};

const update = async () => {
  const status = document.getElementById("status");
  try {
    const answer = await fetch("/groups");
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    const {clock, groups} = await answer.json();
    remember(groups, clock.now_ms);
    const sections = groups.map(group => shown(group, clock.now_ms));
    document.getElementById("groups").replaceChildren(...(sections.length ? [digest(groups), ...sections] : [make("p", "No group yet.")]));
    status.textContent = clock.is_frozen ? "live; the clock is frozen" : "live";
  } catch (problem) {
    status.textContent = `not live: ${problem.message}`;
  }
  setTimeout(update, 1000);
};
update();
