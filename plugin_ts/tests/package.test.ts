/** What is installed, and what is said of it. */

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { PLUGIN } from "./host/plugin-host";

const read = (name: string): string => readFileSync(path.join(PLUGIN, name), "utf8");
const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Record<string, Record<string, string>>;

test("the lock file holds hashes and no addresses", () => {
  const packages = Object.entries(
    (JSON.parse(read("package-lock.json")) as { packages: Record<string, Record<string, unknown>> }).packages,
  );

  expect(packages.length).toBeGreaterThan(50);
  expect(packages.filter(([, entry]) => "resolved" in entry)).toEqual([]);
  expect(packages.filter(([name, entry]) => name !== "" && typeof entry.integrity !== "string")).toEqual([]);
  expect(read("package-lock.json")).not.toMatch(/registry|:\/\//);
});

test("every dependency is pinned to one version, and named in the notices", () => {
  const notices = read("../THIRD_PARTY_NOTICES.md");

  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(notices).toContain(`\`${name}\``);
  }
});

test("only what is bundled is needed at run time", () => {
  expect(Object.keys(dependencies ?? {})).toEqual(["ws"]);
});
