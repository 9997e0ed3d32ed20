// Runs Pi's own published functions on sessions and prints what they decide, as JSON.
//
//   node driver.mjs PACKAGE_FOLDER < questions.json > answers.json
//
// Questions: {"sessions": [{"entries": [raw session-file objects], "asks": [{"leaf": row, "keep": tokens, ...}]}]}
// A row is the position of an entry among those that are no header. Every message gets its row as its time, so that what
// Pi hands on can be told apart however it was copied.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const core = pathToFileURL(`${process.argv[2]}/dist/core/`).href;
const compaction = await import(`${core}compaction/index.js`);
const manager = await import(`${core}session-manager.js`);
const messages = await import(`${core}messages.js`);
const given = JSON.parse(readFileSync(0, "utf8"));

function migrated(raw) {
  const all = structuredClone(raw);
  if (!all.some((entry) => entry.type === "session")) all.unshift({ type: "session", id: "s", version: 3 });
  manager.migrateSessionEntries(all);
  const entries = all.filter((entry) => entry.type !== "session");
  const names = new Map(entries.map((entry, row) => [entry.id, `n${row}`]));
  entries.forEach((entry, row) => {
    for (const field of ["id", "parentId", "firstKeptEntryId", "fromId", "targetId"]) {
      if (names.has(entry[field])) entry[field] = names.get(entry[field]);
    }
    entry.timestamp = new Date(row).toISOString();
    if (entry.message) entry.message.timestamp = row;
  });
  return entries;
}

function pathTo(byId, id) {
  const path = [];
  for (let at = byId.get(id); at; at = at.parentId ? byId.get(at.parentId) : undefined) path.push(at);
  return path.reverse();
}

const rows = (list) => list.map((message) => message.timestamp);
const named = (list) => list.map((message) => [message.role, message.timestamp]);
const visible = (list) => list.filter((message) => message.role !== "system");

async function summarised(prepared, ask) {
  // Only releases whose `compact` takes the function that calls the model can be watched at it.
  const asked = [];
  const call = (model, context, options) => {
    const prompt = context.messages.find((message) => message.role === "user");
    asked.push({ text: prompt.content[0].text, limit: options.maxTokens ?? null });
    const text = ask.answers[asked.length - 1];
    return { result: async () => ({ content: [{ type: "text", text }], stopReason: "stop", usage: zero() }) };
  };
  const model = { maxTokens: ask.maxTokens, reasoning: false, contextWindow: 200000 };
  const result = await compaction.compact(prepared, model, "", {}, undefined, undefined, "off", call);
  return { asked, summary: result.summary, details: result.details };
}

function zero() {
  const none = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  return { ...none, totalTokens: 0, cost: { ...none, total: 0 } };
}

async function answer(entries, ask) {
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const leaf = `n${ask.leaf}`;
  const path = pathTo(byId, leaf);
  const settings = { enabled: true, reserveTokens: 16384, keepRecentTokens: ask.keep };
  const context = named(visible(manager.buildSessionContext(entries, leaf).messages));
  const prepared = compaction.prepareCompaction(path, settings);
  if (!prepared) return { context, refused: true };
  const lists = compaction.computeFileLists(prepared.fileOps);
  const made = {
    type: "compaction",
    id: "made",
    parentId: leaf,
    timestamp: new Date(entries.length).toISOString(),
    summary: "S",
    firstKeptEntryId: prepared.firstKeptEntryId,
    tokensBefore: prepared.tokensBefore,
  };
  const found = {
    context,
    kept: prepared.firstKeptEntryId,
    split: prepared.isSplitTurn,
    history: rows(prepared.messagesToSummarize),
    prefix: rows(prepared.turnPrefixMessages),
    before: prepared.tokensBefore,
    previous: prepared.previousSummary ?? null,
    read: lists.readFiles,
    modified: lists.modifiedFiles,
    after: named(visible(manager.buildSessionContext([...entries, made], "made").messages)),
  };
  if (ask.text) {
    const text = (list) => compaction.serializeConversation(messages.convertToLlm(list));
    found.texts = [text(prepared.messagesToSummarize), text(prepared.turnPrefixMessages)];
  }
  if (ask.answers) found.compact = await summarised(prepared, ask);
  return found;
}

// Pi's cut takes missing content as empty; its branch summaries (and all of the older release) fail on it.
function filled(entry) {
  if (!entry.message || isMeasured(entry)) return entry;
  return { ...entry, message: { ...entry.message, content: [] } };
}

function branch(entries, ask) {
  const byId = new Map(entries.map((entry) => [entry.id, filled(entry)]));
  const session = { getBranch: (id) => pathTo(byId, id), getEntry: (id) => byId.get(id) };
  const left = compaction.collectEntriesForBranchSummary(session, `n${ask.leaf}`, `n${ask.target}`);
  const prepared = compaction.prepareBranchEntries(left.entries, ask.budget);
  const lists = compaction.computeFileLists(prepared.fileOps);
  return {
    ancestor: left.commonAncestorId,
    left: left.entries.map((entry) => entry.id),
    messages: rows(prepared.messages),
    read: lists.readFiles,
    modified: lists.modifiedFiles,
  };
}

function isMeasured(entry) {
  return entry.type === "message" && (entry.message.role === "bashExecution" || entry.message.content != null);
}

const answers = [];
for (const session of given.sessions) {
  const asRead = migrated(session.entries);
  const entries = manager.sessionEntryToContextMessages ? asRead : asRead.map(filled);
  const found = [];
  for (const ask of session.asks) found.push(ask.target === undefined ? await answer(entries, ask) : branch(entries, ask));
  const estimates = session.estimates
    ? entries.map((entry) => (isMeasured(entry) ? compaction.estimateTokens(entry.message) : null))
    : null;
  answers.push({ found, estimates });
}
process.stdout.write(JSON.stringify({ answers }));
