"use strict";
// Tables of text in the browser: read as `rankplane predict` reads them, and written as it writes them.

const DELIMITERS = [",", ";", "\t", "|"];

/** Rows of fields. Throws an Error that names the line of a mistake. */
function parseCsv(text, delimiter) {
  const rows = [];
  let row = [], field = "", line = 1, opened = 0, isQuoted = false, wasQuoted = false;
  const endField = () => { row.push(field); field = ""; wasQuoted = false; };
  const endRow = () => {
    endField();
    if (row.length > 1 || row[0].trim()) rows.push({ fields: row, line });
    row = [];
  };
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (isQuoted) {
      if (c === '"' && text[i + 1] === '"') { field += c; i++; }
      else if (c === '"') { isQuoted = false; wasQuoted = true; }
      else { if (c === "\n") line++; field += c; }
    } else if (c === '"' && field === "" && !wasQuoted) { isQuoted = true; opened = line; }
    else if (c === delimiter) endField();
    else if (c === "\n" || c === "\r") {
      if (c === "\r" && text[i + 1] === "\n") i++;
      endRow();
      line++;
    } else if (wasQuoted) throw new Error(`line ${line}: a quote is closed in the middle of a field; quotes within a field are doubled.`);
    else field += c;
  }
  if (isQuoted) throw new Error(`line ${opened}: a quote is opened and never closed.`);
  if (field || row.length) endRow();
  return rows;
}

/** The delimiter that parts the first line into most fields. */
function delimiterOf(text) {
  const first = text.slice(0, 100000).split(/\r?\n|\r/).find(line => line.trim()) || "";
  const counts = DELIMITERS.map(delimiter => first.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))];
}

/** A header and rows of equal length. */
function readTable(text) {
  const delimiter = delimiterOf(text = text.replace(/^\ufeff/, ""));
  const [head, ...rows] = parseCsv(text, delimiter);
  if (!head) throw new Error("it is empty.");
  const header = head.fields;
  const twice = header.find((name, place) => header.indexOf(name) !== place);
  if (twice !== undefined) throw new Error(`column "${twice}" occurs twice.`);
  const bad = rows.find(row => row.fields.length !== header.length);
  if (bad) throw new Error(`line ${bad.line}: ${bad.fields.length} fields, but the header has ${header.length}.`);
  if (!rows.length) throw new Error("it has no rows under its header.");
  return { header, rows: rows.map(row => row.fields) };
}

function writeCsv(header, rows) {
  const cell = value => /[",\r\n]/.test(value = String(value)) ? `"${value.replaceAll('"', '""')}"` : value;
  return [header, ...rows].map(row => row.map(cell).join(",") + "\r\n").join("");
}
