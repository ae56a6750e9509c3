/** Builds, once and before all tests, what they run: the plugin's two bundles, the host's worker, the program double. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import type { TestProject } from "vitest/node";
import { compilePlugin } from "./host/compile";

declare module "vitest" {
  interface ProvidedContext {
    /** A directory with `client.js`, `server.js`, `worker.mjs` and `semindex.mjs`. */
    built: string;
  }
}

export default async function setup(project: TestProject): Promise<() => void> {
  const built = mkdtempSync(path.join(tmpdir(), "semindex-plugin-built-"));
  const { client, server } = await compilePlugin(fileURLToPath(new URL("..", import.meta.url)));
  writeFileSync(path.join(built, "client.js"), client);
  writeFileSync(path.join(built, "server.js"), server);
  await program("host/worker.ts", path.join(built, "worker.mjs"));
  await program("doubles/semindex.ts", path.join(built, "semindex.mjs"));
  project.provide("built", built);
  return () => rmSync(built, { recursive: true });
}

/** One file that needs no packages where it lies. */
async function program(source: string, outfile: string): Promise<void> {
  await build({
    entryPoints: [fileURLToPath(new URL(source, import.meta.url))],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    // What is bundled of packages asks for Node's own modules in the old way.
    banner: {
      js: 'import { createRequire as builtins } from "node:module"; const require = builtins(import.meta.url);',
    },
  });
}
