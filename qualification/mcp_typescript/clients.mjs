// Twenty clients at once, of both TypeScript SDKs and both protocol eras, each with a root of its own.
//
//   node clients.mjs URL TOKEN ROOT QUERY MARKER [ROOT QUERY MARKER ...]
//
// Prints one JSON line per client: which kind it is, and what it found instead of what it must.
import { pathToFileURL } from "node:url";

import * as modern from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const CLIENTS = 20;
const [url, token, ...rest] = process.argv.slice(2);
const trees = [];
for (let at = 0; at < rest.length; at += 3) {
  trees.push({ root: rest[at], query: rest[at + 1], marker: rest[at + 2] });
}
const identity = { name: "semindex-qualification", version: "1.0.0" };
const headers = { requestInit: { headers: { authorization: `Bearer ${token}` } } };
const capabilities = { capabilities: { roots: { listChanged: false } } };

const kinds = {
  "sdk 1": (roots) => {
    const client = new Client(identity, capabilities);
    client.setRequestHandler(ListRootsRequestSchema, () => roots);
    return [client, new StreamableHTTPClientTransport(new URL(url), headers)];
  },
  "client 2, sessions": (roots) => newer(roots, {}),
  "client 2, no sessions": (roots) => newer(roots, { versionNegotiation: { mode: "auto" } }),
};

function newer(roots, options) {
  const client = new modern.Client(identity, { ...capabilities, ...options });
  client.setRequestHandler("roots/list", () => roots);
  return [client, new modern.StreamableHTTPClientTransport(new URL(url), headers)];
}

async function ask(kind, tree) {
  const roots = { roots: [{ uri: pathToFileURL(tree.root).href }] };
  const [client, transport] = kinds[kind](roots);
  await client.connect(transport);
  try {
    const { tools } = await client.listTools();
    const names = tools.map((tool) => tool.name).sort();
    if (names.join() !== "index_status,semantic_search") return `tools: ${names}`;
    const found = await client.callTool({ name: "semantic_search", arguments: { query: tree.query, maxResults: 10 } });
    if (found.isError || !JSON.stringify(found.structuredContent).includes(tree.marker)) {
      return `search: ${JSON.stringify(found).slice(0, 300)}`;
    }
    const others = trees.filter((other) => other !== tree).map((other) => other.marker);
    if (others.some((marker) => JSON.stringify(found.structuredContent).includes(marker))) return "saw another workspace";
    const status = await client.callTool({ name: "index_status", arguments: {} });
    if (status.isError || status.structuredContent.state !== "Indexed") return `status: ${JSON.stringify(status)}`;
    return "";
  } finally {
    await client.close();
  }
}

const outcomes = await Promise.all(
  Array.from({ length: CLIENTS }, async (_, number) => {
    const kind = Object.keys(kinds)[number % 3];
    try {
      return { kind, fault: await ask(kind, trees[number % trees.length]) };
    } catch (error) {
      return { kind, fault: String(error?.message ?? error) };
    }
  }),
);
for (const outcome of outcomes) console.log(JSON.stringify(outcome));
process.exit(outcomes.some((outcome) => outcome.fault) ? 1 : 0);
