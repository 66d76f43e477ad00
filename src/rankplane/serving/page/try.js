// The page to try models: asks the server that it came from, and shows what it says. Nothing here comes from another place.

const $ = id => document.getElementById(id);
const COVERAGE = 0.9, SHOWN_ROWS = 500, ASKED_ROWS = 200, ASKED_CHARACTERS = 200000, TYPING = 450, MAX_FILE = 50e6, SHARES = "probabilities";
const state = { models: [], limits: null, model: null, asked: 0, timer: 0, download: "" };

/** An element with attributes, and children or text. Text is never taken for markup. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

const percent = share => share > 0 && share < .005 ? "< 1 %" : `${Math.round(100 * share)} %`;
const signed = value => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}`;
const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const setInWords = set => set.length === 1 ? `${set[0]}` : set.length ? `${set[0]}–${set[set.length - 1]}` : "";

async function ask(path, body, signal) {
  const headers = {}, token = sessionStorage.getItem("token");
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The server does not answer.");
  }
  const answer = await response.json().catch(() => ({ error: `The server answered with status ${response.status}.` }));
  if (response.status === 401) askForToken(Boolean(token));
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

function askForToken(isWrong) {
  sessionStorage.removeItem("token");
  $("token-form").hidden = false;
  $("desk").hidden = true;
  $("about").textContent = isWrong ? "That token is not valid." : "";
  $("token").focus();
}

function complain(sentence) {
  $("problem").textContent = sentence;
  $("problem").hidden = !sentence;
}

async function start() {
  let found;
  try {
    found = await ask("models");
  } catch (error) {
    if ($("token-form").hidden) $("about").textContent = error.message;
    return;
  }
  state.models = found.models;
  state.limits = found.limits;
  $("token-form").hidden = true;
  $("desk").hidden = false;
  $("model").replaceChildren(...state.models.map(model => el("option", { value: model.name }, model.name)));
  $("choice").hidden = state.models.length < 2;
  choose(state.models.find(model => model.name === location.hash.slice(1)) || state.models[0]);
}

function choose(model) {
  state.model = model;
  $("model").value = model.name;
  document.title = `${model.name} · rankplane`;
  $("title").textContent = model.name;
  const ranks = model.ranks.length > 8 ? `${model.ranks.length} ranks from ${model.ranks[0]} to ${model.ranks.at(-1)}` : model.ranks.join(", ");
  const facts = [`Predicts ${model.target}: ${ranks}`];
  if (model.trained.rows) facts.push(`trained on ${count(model.trained.rows, "row")}`);
  if (model.measured) facts.push(`mean error ${model.measured.mae.toFixed(2)} ranks`);
  $("about").textContent = facts.join(" · ");
  $("fields").replaceChildren(...fieldsOf(model));
  $("hint").textContent = isSingleText()
    ? "Several lines, or a csv file dropped here, become a table."
    : "A csv file with these columns, dropped here, becomes a table.";
  forget();
  $("fields").querySelector("textarea, input, select").focus({ preventScroll: true });
}

/** One box for a text; one control per column for a table. */
function fieldsOf(model) {
  if (model.kind === "numbers") return [field("pairs", "Columns and their values", el("textarea", { placeholder: "1:0.5 7:2" }))];
  const single = model.columns.length <= 1;
  const fields = model.columns.map((column, place) => {
    if (column.type === "category") {
      const options = ["", ...column.categories].map(value => el("option", { value }, value || "–"));
      return field(place, column.name, el("select", {}, ...options));
    }
    if (column.type === "date") return field(place, column.name, el("input", { placeholder: "2026-01-31", autocomplete: "off" }));
    if (column.type === "list") return field(place, column.name, el("textarea", { class: "short", rows: 2, placeholder: `[${column.places} numbers]` }));
    if (column.type === "number") return field(place, column.name, el("input", { inputmode: "decimal", autocomplete: "off" }));
    return field(place, single ? "Text" : column.name, el("textarea", { class: single ? "" : "short", rows: single ? 6 : place ? 5 : 2 }));
  });
  return model.kind === "table" ? [el("div", { class: "grid" }, ...fields)] : fields;
}

function field(key, name, control) {
  control.id = `field-${key}`;
  return el("div", { class: "field" }, el("label", { for: control.id }, name), control);
}

function forget() {
  state.asked++;
  complain("");
  for (const id of ["answer", "why-card", "table-card", "lines-choice"]) $(id).hidden = true;
  $("nothing").hidden = false;
}

const controls = () => [...$("fields").querySelectorAll("textarea, input, select")];
const isSingleText = () => state.model.kind === "text" && state.model.columns.length === 1;
const lines = () => isSingleText() ? controls()[0].value.split(/\r?\n/).filter(line => line.trim()) : [];
const isEmpty = () => controls().every(control => !control.value.trim());

/** What is in the fields, as the server takes it. */
function inputOfFields() {
  const { model } = state, values = controls().map(control => control.value);
  if (isSingleText()) return { text: values[0] };
  if (model.kind === "numbers") return { row: pairs(values[0]) };
  return { row: Object.fromEntries(model.columns.map((column, place) => [column.name, values[place] === "" ? null : values[place]])) };
}

function pairs(text) {
  return Object.fromEntries(text.split(/\s+/).filter(Boolean).map(pair => {
    const found = /^(\d+):(\S+)$/.exec(pair);
    if (!found) throw new Error(`Write pairs such as 1:0.5, a column number and its value. Got ${pair}.`);
    return [found[1], found[2]];
  }));
}

async function predict() {
  const mine = ++state.asked;
  complain("");
  const several = lines();
  $("lines-choice").hidden = several.length < 2;
  if (isEmpty()) return forget();
  try {
    if (several.length > 1 && $("lines").checked) {
      return await predictTable(["text"], several.map(text => [text]), mine);
    }
    $("table-card").hidden = true;
    const answer = await ask("predict", { model: state.model.name, ...inputOfFields(), set: COVERAGE, explain: state.model.explains });
    if (mine === state.asked) showPrediction(answer.predictions[0]);
  } catch (error) {
    if (mine === state.asked) complain(error.message);
  }
}

const bar = (name, share, value, kind) => el("li", { class: kind }, el("span", { class: "name" }, name),
  el("span", { class: "track", "aria-hidden": "true" }, el("span", { class: "fill", "--s": share })), el("span", { class: "share" }, value));

// One prediction

function showPrediction(prediction) {
  const { model } = state, { rank, set } = prediction, best = String(rank);
  const likely = prediction.probabilities[best];
  const inside = new Set(set.map(String));
  const bars = Object.entries(prediction.probabilities).map(([name, share]) => bar(name, share, percent(share), name === best ? "best" : inside.has(name) ? "in" : ""));
  $("answer-heading").textContent = "Prediction";
  $("answer").replaceChildren(
    el("div", { class: "verdict" },
      el("div", { class: best.length > 6 ? "rank long" : "rank" }, el("small", {}, model.target), " ", best),
      el("div", { class: "sure" }, el("b", {}, setInWords(set)), ` with ${percent(COVERAGE)} certainty`)),
    el("ul", { class: "bars", "aria-label": "Probability of each rank" }, ...bars),
    el("p", { class: "legend", "aria-hidden": "true" },
      el("span", {}, el("i", { class: "l-best" }), "predicted"), el("span", {}, el("i", { class: "l-in" }), `in the ${percent(COVERAGE)} set`),
      el("span", {}, el("i"), "less likely")));
  $("answer").hidden = false;
  $("nothing").hidden = true;
  $("status").textContent = `${model.target} ${rank}, ${percent(likely)}. ${setInWords(set)} with ${percent(COVERAGE)} certainty.`;
  $("why-card").hidden = !prediction.explanation;
  if (prediction.explanation) $("why").replaceChildren(...explained(prediction.explanation, rank));
}

function explained(explanation, rank) {
  const { boundaries, decided_at: place } = explanation, decided = boundaries[place];
  const parts = [];
  if (explanation.pieces) parts.push(...colouredText(explanation));
  const isAbove = decided.score > 0, subject = explanation.pieces ? "text" : "row";
  const name = boundary => `${boundary.lower} | ${boundary.upper}`;
  const [nearer, farther] = isAbove ? [decided.upper, decided.lower] : [decided.lower, decided.upper];
  const lies = `: the ${subject} lies ${Math.abs(decided.score).toFixed(2)} ${isAbove ? "above" : "below"} it, `;
  parts.push(el("p", { class: "decided" }, ...(state.model.ranks[explanation.above] === rank
    ? ["Decided at the boundary ", el("b", {}, name(decided)), lies, `which makes it ${nearer} rather than ${farther}.`]
    : ["The nearest boundary is ", el("b", {}, name(decided)), lies, `which alone would not give ${rank}: the probabilities, learnt from held-out rows, decided.`])));
  const most = Math.max(...boundaries.map(boundary => Math.abs(boundary.score)), 1e-9);
  parts.push(el("ul", { class: "scale", "aria-label": "Score at each boundary between ranks" }, ...boundaries.map((boundary, number) => {
    const chosen = number === place ? " chosen" : "";
    return el("li", {}, el("span", { class: `name${chosen}` }, name(boundary)),
      el("span", { class: `axis ${boundary.score > 0 ? "above" : "below"}${chosen}`, "--s": boundary.score / most, "aria-hidden": "true" }),
      el("span", { class: `score${chosen ? " chosen" : ""}` }, signed(boundary.score)));
  })));
  const list = (kind, heading, terms) => el("div", { class: kind }, el("h3", {}, heading),
    terms.length ? el("ul", {}, ...terms.map(([term, value]) => el("li", {}, term, el("span", {}, signed(value))))) : el("p", { class: "note" }, "nothing"));
  parts.push(el("div", { class: "terms" },
    list("up", `Pulls up at ${name(decided)}`, decided.up), list("down", `Pulls down at ${name(decided)}`, decided.down)));
  const notes = [`The bias ${signed(decided.bias)}, these pulls and the rest ${signed(decided.rest)} add up to the score ${signed(decided.score)}.`];
  if (explanation.words) notes.push(`The model knows ${explanation.words.known} of ${explanation.words.all} ${explanation.words.are}.`);
  parts.push(el("p", { class: "note" }, notes.join(" ")));
  return parts;
}

function colouredText({ pieces, words }) {
  const text = el("p", { class: "text" }, ...pieces.map(([piece, pull]) => Math.abs(pull) <= .05 || !piece.trim() ? piece
    : el("mark", { class: pull > 0 ? "up" : "down", "--s": Math.min(1, .25 + .75 * Math.abs(pull)) }, piece)));
  if (words && !words.known) return [text, el("p", { class: "note" }, "The model knows none of these words; the prediction is that of an empty text.")];
  return [text, el("p", { class: "note" }, "Words pull ", el("mark", { class: "up", "--s": .7 }, "up, underlined"), " or ",
    el("mark", { class: "down", "--s": .7 }, "down, dotted"), "; the stronger the colour, the stronger the pull.")];
}

// Tables

async function openFile(file) {
  const mine = ++state.asked;
  complain("");
  try {
    if (file.size > MAX_FILE) throw new Error(`it is larger than ${MAX_FILE / 1e6} MB; use rankplane predict for such files.`);
    const { header, rows } = readTable(await file.text());
    if (mine === state.asked) await predictTable(header, rows, mine, file.name);
  } catch (error) {
    if (mine === state.asked) complain(`${file.name}: ${error.message}`);
  }
}

/** How the server is asked about rows: by the columns of the model, or by the only column if the model takes one text. */
function asker(header) {
  const { model } = state, needed = model.columns.map(column => column.name);
  const lacking = needed.find(name => !header.includes(name));
  if (isSingleText() && (lacking === undefined || header.length === 1)) {
    const place = lacking === undefined ? header.indexOf(needed[0]) : 0;
    return { shown: [place], body: rows => ({ texts: rows.map(row => row[place]) }) };
  }
  if (lacking !== undefined) throw new Error(`it has no column "${lacking}"; its columns are ${header.slice(0, 20).join(", ")}.`);
  const used = model.kind === "numbers" ? header : needed, places = used.map(name => header.indexOf(name));
  const cell = value => value === "" ? null : value;
  const rowOf = row => Object.fromEntries(used.map((name, number) => [name, cell(row[places[number]])]));
  return { shown: places.slice(0, 6), body: rows => ({ rows: rows.map(rowOf) }) };
}

/** Rows in parts that the server takes. */
function* parts(rows) {
  const most = Math.min(ASKED_ROWS, state.limits.rows);
  let start = 0, size = 0;
  for (let end = 0; end < rows.length; end++) {
    const own = rows[end].reduce((sum, value) => sum + value.length, 0);
    if (end > start && (end - start >= most || size + own > ASKED_CHARACTERS)) { yield [start, end]; start = end; size = 0; }
    size += own;
  }
  yield [start, rows.length];
}

async function predictTable(header, rows, mine, source = "") {
  const { shown, body } = asker(header), predictions = [];
  for (const id of ["answer", "why-card"]) $(id).hidden = true;
  $("nothing").hidden = false;
  $("table").replaceChildren();
  $("table-card").hidden = false;
  $("download").hidden = true;
  $("progress").hidden = false;
  $("progress").value = 0;
  $("table-heading").textContent = `Predicting ${count(rows.length, "row")}${source ? ` of ${source}` : ""}`;
  try {
    for (const [start, end] of parts(rows)) {
      const answer = await ask("predict", { model: state.model.name, ...body(rows.slice(start, end)), set: COVERAGE });
      if (mine !== state.asked) return;
      predictions.push(...answer.predictions);
      $("progress").value = predictions.length / rows.length;
    }
  } catch (error) {
    $("table-card").hidden = true;
    throw error;
  }
  $("progress").hidden = true;
  $("table-heading").textContent = `${count(rows.length, "prediction")}${source ? ` for ${source}` : ""}`;
  $("table").replaceChildren(...tableOf(header, rows, shown, predictions));
  $("answer-heading").textContent = "Predictions";
  $("answer").replaceChildren(...summaryOf(predictions));
  $("answer").hidden = false;
  $("nothing").hidden = true;
  URL.revokeObjectURL(state.download);
  state.download = URL.createObjectURL(new Blob([csvOf(header, rows, predictions)], { type: "text/csv" }));
  $("download").href = state.download;
  $("download").hidden = false;
  $("status").textContent = `${count(rows.length, "row")} predicted.`;
}

function tableOf(header, rows, shown, predictions) {
  const { model } = state;
  const head = ["", model.target, percent(COVERAGE) + " set", SHARES, ...(model.explains ? ["why"] : []), ...shown.map(place => header[place])];
  const body = rows.slice(0, SHOWN_ROWS).map((row, number) => {
    const { rank, set, probabilities } = predictions[number], shares = Object.entries(probabilities);
    const most = Math.max(...shares.map(([, share]) => share)), told = shares.map(([name, share]) => `${name}: ${percent(share)}`).join(", ");
    const said = place => el("td", { class: model.kind === "text" ? "said" : "" }, el("div", { title: row[place].length > 90 ? row[place].slice(0, 2000) : null }, row[place]));
    const why = el("button", { class: "link", type: "button", "aria-label": `Why row ${number + 1}` }, "Why");
    why.addEventListener("click", () => explainRow(header, row));
    return el("tr", {}, el("th", { scope: "row" }, number + 1),
      el("td", { class: "predicted" }, rank), el("td", { class: "number" }, setInWords(set)),
      el("td", { class: "wider" }, el("div", { class: "mini", role: "img", "aria-label": told, title: told },
        ...shares.map(([name, share]) => el("i", { class: name === String(rank) ? "best" : "", "--s": share / most })))),
      ...(model.explains ? [el("td", {}, why)] : []), ...shown.map(said));
  });
  const headings = head.map(name => name ? el("th", { scope: "col", class: name === SHARES ? "wider" : null }, name) : el("td"));
  const table = el("table", {}, el("caption", {}, "Predictions, row by row"), el("thead", {}, el("tr", {}, ...headings)), el("tbody", {}, ...body));
  const more = rows.length > SHOWN_ROWS ? [el("p", { class: "note" }, `The first ${SHOWN_ROWS} rows. The file to download has all.`)] : [];
  return [el("div", { class: "wide", role: "region", tabindex: "0", "aria-label": "Predictions, row by row" }, table), ...more];
}

/** How often each rank was predicted. */
function summaryOf(predictions) {
  const { model } = state, counts = new Map(model.ranks.map(rank => [rank, 0]));
  predictions.forEach(({ rank }) => counts.set(rank, counts.get(rank) + 1));
  const most = Math.max(...counts.values());
  const bars = [...counts].map(([rank, n]) => bar(rank, n / most, n.toLocaleString("en"), "in"));
  return [el("p", { class: "sure" }, "How often each rank was predicted"), el("ul", { class: "bars", "aria-label": "How often each rank was predicted" }, ...bars)];
}

function csvOf(header, rows, predictions) {
  const names = ["prediction", ...state.model.ranks.map(rank => `p_${rank}`), "set"];
  const free = name => { while (header.includes(name)) name += "_"; return name; };
  return writeCsv([...header, ...names.map(free)], rows.map((row, number) => {
    const { rank, set, probabilities } = predictions[number];
    return [...row, rank, ...Object.values(probabilities), set.length > 1 ? `${set[0]}-${set.at(-1)}` : set[0]];
  }));
}

async function explainRow(header, row) {
  const mine = ++state.asked;
  try {
    const question = asker(header).body([row]);
    const answer = await ask("predict", { model: state.model.name, ...question, set: COVERAGE, explain: true });
    if (mine !== state.asked) return;
    showPrediction(answer.predictions[0]);
    $("answer-card").scrollIntoView({ block: "nearest" });
    $("answer-heading").setAttribute("tabindex", "-1");
    $("answer-heading").focus();
  } catch (error) {
    complain(error.message);
  }
}

// What people do

$("form").addEventListener("submit", event => { event.preventDefault(); clearTimeout(state.timer); predict(); });
$("form").addEventListener("keydown", event => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); $("form").requestSubmit(); }
});
$("fields").addEventListener("input", () => { clearTimeout(state.timer); state.timer = setTimeout(predict, TYPING); });
$("lines").addEventListener("change", predict);
$("clear").addEventListener("click", () => {
  controls().forEach(control => { control.value = ""; });
  forget();
  controls()[0].focus();
});
$("model").addEventListener("change", () => {
  location.hash = $("model").value;
  choose(state.models.find(model => model.name === $("model").value));
});
$("token-form").addEventListener("submit", event => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  start();
});
$("file").addEventListener("change", () => { if ($("file").files[0]) openFile($("file").files[0]); $("file").value = ""; });
let depth = 0;
const hasFile = event => !$("desk").hidden && [...event.dataTransfer.types].includes("Files");
const lay = change => { depth = Math.max(0, change); $("drop").hidden = !depth; };
addEventListener("dragenter", event => { if (hasFile(event)) { event.preventDefault(); lay(depth + 1); } });
addEventListener("dragleave", event => { if (hasFile(event)) lay(depth - 1); });
addEventListener("dragover", event => { if (hasFile(event)) event.preventDefault(); });
addEventListener("drop", event => {
  if (!hasFile(event)) return;
  event.preventDefault();
  lay(0);
  openFile(event.dataTransfer.files[0]);
});
start();
