import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { controlToken, findRunning } from "../../server/discovery";
import { loadSettings, type Settings } from "../../server/settings";
import { World } from "../world";

const URL = "http://127.0.0.1:7790";
let world: World;
let settings: Settings;
beforeEach(async () => {
  world = new World();
  settings = await loadSettings(world.environment({}));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await world.end();
});

test("the service that holds the state directory is found, until it says that it is about to end", async () => {
  world.hold(URL);
  expect(await findRunning(settings)).toBe(URL);

  world.hold(URL, "stopping");
  expect(await findRunning(settings)).toBeNull();
});

test("a process of another user is not the service, whatever the lock file says", async () => {
  world.hold(URL);
  // As root, whom the system refuses nothing, no process would do for this.
  vi.spyOn(process, "kill").mockImplementation(() => {
    throw Object.assign(new Error("not permitted"), { code: "EPERM" });
  });

  expect(await findRunning(settings)).toBeNull();
});

test.runIf(process.platform === "linux")(
  "a process that only has the number of a service that died is not the service",
  async () => {
    writeFileSync(world.lock, JSON.stringify({ pid: process.pid, phase: "ready", url: URL }));

    expect(await findRunning(settings)).toBeNull();
  },
);

test("a token that a service made for itself opens no other address than that of this service", async () => {
  const controlTokenFile = path.join(world.state, "control.token");
  writeFileSync(controlTokenFile, "made-at-its-first-start\n");
  writeFileSync(path.join(world.state, "cell.json"), JSON.stringify({ url: URL, pid: process.pid, controlTokenFile }));

  expect(await controlToken(settings, {}, URL)).toBe("made-at-its-first-start");
  await expect(controlToken(settings, {}, "http://127.0.0.1:7791")).rejects.toThrow(
    "The service at http://127.0.0.1:7791 has not said in",
  );
});
