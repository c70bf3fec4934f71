"use strict";
// The live page of all groups. It asks /groups every second and keeps two minutes of answers: rates are changes between
// commits, and each group has a chart of its members' lags.

const KEPT_MS = 120000;
const RATE_OVER_MS = 30000; // several commits, which most consumers make every 5 seconds
const FRAME = 34; // pixels beside a chart in its section
const LINES = 6; // members with a colour of their own in a chart; the others are grey
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
    samples.set(group.group_id, kept.filter(sample => nowMs - sample.atMs <= KEPT_MS));
  }
};

// Records in a second of one partition, by one of the sample's maps. A commit brings many records at once, so the rate is
// that between the first change and the last one; without two of them null.
const rateOf = (kept, key, which) => {
  const nowMs = kept[kept.length - 1].atMs;
  const changes = [];
  let before = null;
  for (const sample of kept) {
    const value = sample[which].get(key);
    if (typeof value !== "number") continue;
    if (before !== null && value > before && nowMs - sample.atMs <= RATE_OVER_MS) changes.push([sample.atMs, value]);
    before = value;
  }
  if (changes.length < 2) return nowMs - kept[0].atMs >= RATE_OVER_MS ? 0 : null;
  const [firstMs, from] = changes[0], [lastMs, to] = changes[changes.length - 1];
  // A longer pause than between these commits is part of the rate: the member may have stopped.
  const usualMs = (lastMs - firstMs) / (changes.length - 1);
  return (to - from) * 1000 / (Math.max(lastMs, nowMs - 2 * usualMs) - firstMs);
};
const rate = (groupId, partitions, which) => {
  const kept = samples.get(groupId);
  const rates = partitions.map(each => rateOf(kept, keyOf(each), which)).filter(each => each !== null);
  return rates.length ? rates.reduce((sum, each) => sum + each, 0) : null;
};

const element = (name, attributes, text) => {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};

// Three round numbers up to at least the largest value.
const ticks = most => {
  const step = Math.pow(10, Math.floor(Math.log10(Math.max(most, 2) / 2)));
  const round = [1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10].map(each => each * step).find(each => 2 * each >= most);
  return [0, round, 2 * round];
};

// The lag of each member since the page was opened, at most two minutes.
const chart = (group, called, order) => {
  const kept = samples.get(group.group_id), nowMs = kept[kept.length - 1].atMs;
  if (nowMs === kept[0].atMs) return make("p", "The lag over time is drawn from the next reading on.", "empty");
  const spanMs = nowMs - kept[0].atMs;
  const width = Math.max(document.getElementById("groups").clientWidth - FRAME, 240);
  const height = 190, left = 64, right = 12, top = 22, bottom = 28;
  const scale = ticks(Math.max(1, ...kept.flatMap(sample => [...sample.lag.values()])));
  const x = atMs => width - right - (width - left - right) * (nowMs - atMs) / spanMs;
  const y = lag => height - bottom - (height - top - bottom) * lag / scale[2];
  const svg = element("svg", {viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img",
    "aria-label": `lag of each member of ${group.group_id} over the last ${duration(spanMs)}`});
  for (const value of scale) {
    svg.append(element("line", {class: value ? "grid" : "axis", x1: left, x2: width - right, y1: y(value), y2: y(value)}));
    svg.append(element("text", {x: left - 8, y: y(value) + 4, "text-anchor": "end"}, number(value)));
  }
  svg.append(element("text", {x: left, y: 12}, "records that wait for each member"));
  for (const [part, anchor] of [[1, "start"], [0.5, "middle"], [0, "end"]])
    svg.append(element("text", {x: x(nowMs - part * spanMs), y: height - 8, "text-anchor": anchor},
      part ? `${duration(part * spanMs)} ago` : "now"));
  // The worst have colours, by name, so that these stay while the order changes; they are drawn last, above the others.
  const worst = order.slice(0, LINES).sort((a, b) => called.get(a.member_id) < called.get(b.member_id) ? -1 : 1);
  for (const member of [...order].reverse()) {
    const rank = worst.indexOf(member);
    const points = kept.filter(sample => sample.lag.has(member.member_id))
      .map(sample => `${x(sample.atMs).toFixed(1)},${y(sample.lag.get(member.member_id)).toFixed(1)}`);
    if (points.length === 1) points.push(points[0]); // a member of one reading is a dot
    const line = element("polyline", {class: `line ${rank < 0 ? "rest" : `c${rank}`}`, points: points.join(" ")});
    line.append(element("title", {}, called.get(member.member_id)));
    svg.append(line);
  }
  const legend = make("ul", undefined, "legend");
  for (const [rank, member] of worst.entries()) {
    const item = make("li");
    item.append(make("i", undefined, `c${rank}`), called.get(member.member_id));
    legend.append(item);
  }
  if (order.length > LINES) {
    const item = make("li");
    item.append(make("i", undefined, "rest"), `${number(order.length - LINES)} more members`);
    legend.append(item);
  }
  const figure = make("div", undefined, "figure");
  figure.append(svg, legend);
  return figure;
};

const grid = (columns, rows) => {
  const made = make("table", undefined, "stacked");
  const head = made.createTHead().insertRow();
  for (const [title, kind, meaning] of columns) {
    const cell = make("th", title, kind);
    cell.scope = "col";
    if (meaning) cell.title = meaning;
    head.append(cell);
  }
  const body = made.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value, index) => {
      const cell = make("td", undefined, columns[index][1]);
      cell.dataset.name = columns[index][0];
      cell.append(value ?? "-");
      line.append(cell);
    });
  }
  const scroll = make("div", undefined, "scroll");
  scroll.append(made);
  return scroll;
};

const table = (name, caption, columns, rows) => {
  const details = make("details");
  details.open = opened.has(name);
  details.addEventListener("toggle", () => details.open ? opened.add(name) : opened.delete(name));
  details.append(make("summary", caption), grid(columns, rows));
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

// What a member can process shows only while it has had a backlog all the time; see `loadwise watch`.
const utilisation = (group, member, arrives, processed) => {
  const kept = samples.get(group.group_id), nowMs = kept[kept.length - 1].atMs;
  const recent = kept.filter(sample => nowMs - sample.atMs <= RATE_OVER_MS);
  const busy = recent.length > 2 && recent.every(sample => (sample.lag.get(member.member_id) ?? 0) > (processed ?? 0));
  return busy && arrives !== null && processed ? arrives / processed : null;
};

const COLUMNS = [
  ["member", "text"],
  ["owns", "text wide"],
  ["lag", "", "records that wait in its partitions"],
  ["", "text", "its lag beside the largest of the group"],
  ["arrive/s", "", "records that arrive for it in a second"],
  ["processed/s", "", "records that it commits in a second"],
  ["utilisation", "", "arrivals over what it can process; known while it has a backlog. Above 100 % it falls behind forever"],
];

const row = (group, member, name, lag, most) => {
  const mine = group.partitions.filter(each => each.member_id === member.member_id);
  const arrives = rate(group.group_id, mine, "ends"), processed = rate(group.group_id, mine, "committed");
  const used = utilisation(group, member, arrives, processed);
  const who = make("span", name);
  who.title = `${member.member_id} from ${member.client_host}`;
  if (member.member_id === group.leader) who.append(make("small", "leader"));
  const share = element("svg", {viewBox: "0 0 100 10", preserveAspectRatio: "none", class: "share", role: "img",
    "aria-label": `lag ${number(lag)} of at most ${number(most)}`});
  share.append(element("rect", {class: "all", width: 100, height: 10}),
    element("rect", {class: used > 1 ? "behind" : "", width: most ? 100 * lag / most : 0, height: 10}));
  return [who, owned(member.assignment), number(lag), share, number(arrives), number(processed),
    used === null ? "-" : make("b", `${Math.round(100 * used)} %`, used > 1 ? "behind" : "")];
};

const duration = ms => ms < 1000 ? `${Math.round(ms)} ms` : ms < 120000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60000)} min`;
const ago = ms => `${duration(ms)} ago`;

// A reason with the short names of members in place of their ids; those that left have their client id.
const UUID = /-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g;
const inWords = (reason, called) =>
  [...called].reduce((text, [id, name]) => text.replaceAll(id, name), reason).replace(UUID, "");

// The newest transition that began a rebalance or decided about one; those after it only complete it.
const newestCause = group => group.history.findLast((each, index) => each.before === each.after
  || ["PreparingRebalance", "Empty"].includes(each.after)
  || group.type !== "classic" && each.generation !== group.history[index - 1]?.generation);

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
  const byName = (a, b) => called.get(a.member_id).localeCompare(called.get(b.member_id), "en", {numeric: true});
  const order = [...group.members].sort((a, b) => lags.get(b.member_id) - lags.get(a.member_id) || byName(a, b));
  const cause = newestCause(group);
  if (cause) {
    const reason = make("p", undefined, "facts");
    const what = cause.before === cause.after ? "last decision" : "last rebalance";
    reason.append(`${what}, ${ago(nowMs - cause.at_ms)}: `, make("b", inWords(cause.reason, called)));
    section.append(reason);
  }
  if (!group.members.length) section.append(make("p", "No member now. The group's commits are kept.", "empty"));
  else {
    section.append(chart(group, called, order));
    section.append(grid(COLUMNS, order.map(each => row(group, each, called.get(each.member_id), lags.get(each.member_id), most))));
  }
  if (group.partitions.length) section.append(table(`${group.group_id} partitions`, `Partitions (${number(group.partitions.length)})`,
    [["topic", "text"], ["partition"], ["committed"], ["end"], ["lag"], ["owner", "text"]],
    group.partitions.map(each => [each.topic, each.partition, number(each.committed), number(each.end), number(each.lag),
      called.get(each.member_id)])));
  section.append(table(`${group.group_id} history`, "History, newest first",
    [["when", "text"], ["from", "text"], ["to", "text"], [epoch], ["members"], ["why", "text wide"]],
    group.history.slice(-20).reverse().map(each => [ago(nowMs - each.at_ms), each.before, each.after, number(each.generation),
      number(each.members), inWords(each.reason, called)])));
  return section;
};

const digest = groups => {
  const box = make("div", undefined, "digest");
  const sum = which => {
    const rates = groups.map(group => rate(group.group_id, group.partitions, which)).filter(each => each !== null);
    return rates.length ? rates.reduce((a, b) => a + b, 0) : null;
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

const empty = cluster => {
  const text = make("p", "No group yet. ", "empty");
  text.append("Start a consumer with a group.id and bootstrap.servers=", make("b", cluster.bootstrap_servers), ".");
  return text;
};

const update = async () => {
  const status = document.getElementById("status");
  try {
    const answer = await fetch("/groups");
    if (!answer.ok) throw new Error(`it answers ${answer.status}`);
    const {clock, cluster, groups} = await answer.json();
    const broker = `loadwise ${cluster.version} at ${cluster.bootstrap_servers}`;
    document.getElementById("broker").textContent = broker;
    document.title = `${groups.length} ${groups.length === 1 ? "group" : "groups"} - ${broker}`;
    remember(groups, clock.now_ms);
    const sections = groups.map(group => shown(group, clock.now_ms));
    document.getElementById("groups").replaceChildren(...(sections.length ? [digest(groups), ...sections] : [empty(cluster)]));
    status.textContent = clock.is_frozen ? "live; the clock is frozen" : "live";
  } catch (problem) {
    status.textContent = `not live: ${problem.message}`;
  }
  setTimeout(update, 1000);
};
update();
