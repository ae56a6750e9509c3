import path from "node:path";
import { inject } from "vitest";

/** A file that was built before the tests. */
export function built(name: "client.js" | "server.js" | "worker.mjs" | "semindex.mjs"): string {
  return path.join(inject("built"), name);
}
