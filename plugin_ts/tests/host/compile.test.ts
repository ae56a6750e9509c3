/** The double's borders: a double that lets everything pass would show nothing of the plugin. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { compilePlugin } from "./compile";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), "semindex-plugin-borders-"));
  write("paseo-plugin.json", JSON.stringify({ id: "demo", requirements: { paseo: ">=0.8.0" } }));
  write("index.client.ts", "export default () => () => undefined;");
  write("index.server.ts", "export default () => () => undefined;");
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(name: string, text: string): void {
  mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
  writeFileSync(path.join(directory, name), text);
}

test("a plugin that keeps to its sides is compiled", async () => {
  write("shared/a.ts", "export const a = 1;");
  write("index.client.ts", 'import { a } from "./shared/a";\nexport default () => () => a;');

  expect(await compilePlugin(directory)).toMatchObject({ id: "demo" });
});

test.each([
  ["the other side", "index.client.ts", 'import { a } from "./server/a";\nexport default () => () => a;'],
  ["a module beside the entries", "index.server.ts", 'import { a } from "./a";\nexport default () => () => a;'],
  ["a module of Node in the client", "index.client.ts", 'import fs from "node:fs";\nexport default () => () => fs;'],
  ["React in the server", "index.server.ts", 'import React from "react";\nexport default () => () => React;'],
  [
    "a mere type of the other side",
    "index.client.ts",
    'import type { PluginServerContext } from "@getpaseo/plugin/server";\nexport default (_: PluginServerContext) => () => undefined;',
  ],
])("%s is refused", async (_, entry, text) => {
  write("server/a.ts", "export const a = 1;");
  write("a.ts", "export const a = 1;");
  write(entry, text);

  await expect(compilePlugin(directory)).rejects.toThrow(/cannot be|belong in/);
});
