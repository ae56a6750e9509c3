// @vitest-environment jsdom
/**
 * Against the real service, where `SEMINDEX_PROGRAM` names it; else these tests are skipped: `npm test` needs no Python.
 */

import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { RegistrationStatus, ServiceStatus } from "../shared/status";
import { App } from "./host/app";
import { TOKEN, World } from "./world";

const PROGRAM = process.env.SEMINDEX_PROGRAM ?? "";
const BOUND = { timeout: 60_000 };

let world: World;
let code: string;
let primary: string;
let worktree: string;

beforeEach(() => {
  world = new World();
  code = realpathSync(world.directory);
  primary = path.join(code, "shop");
  worktree = path.join(code, "fix");
  mkdirSync(primary);
  git("init", "--quiet", "--initial-branch=main");
  writeFileSync(path.join(primary, "sessions.py"), "def expire(session):\n    session.delete()\n".repeat(20));
  git("add", ".");
  git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "--message=begin");
  git("worktree", "add", "--quiet", "-b", "fix", worktree);
});
afterEach(async () => {
  cleanup();
  await world.end();
});

function git(...args: string[]): void {
  execFileSync("git", args, { cwd: primary });
}

/** A daemon's environment with a configured cell. */
function configured(listen: object = { port: 0 }): NodeJS.ProcessEnv {
  const file = path.join(code, "real.json");
  const directories = { stateDirectory: path.join(code, "cell"), cacheDirectory: path.join(code, "cache") };
  writeFileSync(file, JSON.stringify({ ...directories, allowedRoots: [code], listen }));
  return world.environment({
    SEMANTIC_INDEX_PROGRAM: PROGRAM,
    SEMANTIC_INDEX_CONFIG_FILE: file,
    SEMANTIC_INDEX_CONTROL_TOKEN: TOKEN,
    SEMANTIC_INDEX_MCP_TOKEN: "mcp-token-of-the-test",
  });
}

function holder(state: string): { pid: number; url: string } {
  return JSON.parse(readFileSync(path.join(state, "cell.lock"), "utf8")) as { pid: number; url: string };
}

function indexed(count: number): (status: ServiceStatus) => boolean {
  return ({ registrations }) =>
    registrations.length === count && registrations.every(({ state }) => state === "Indexed");
}

describe.skipIf(PROGRAM === "")("the real service", { timeout: 120_000 }, () => {
  test("is started, followed, used from the panel, and ended in order", async () => {
    const plugin = await world.plugin(configured());
    const { host } = plugin;
    const invoke = (method: string, input: unknown): Promise<unknown> => host.invoke(method, input);
    const workspace = {
      id: "wks_2",
      projectId: "prj_1",
      projectRootPath: primary,
      directory: worktree,
      kind: "worktree",
      name: "fix",
    };
    App.load().panel("semantic-index-workspace", invoke, workspace);

    fireEvent.click(await screen.findByLabelText("Register workspace semantic index", undefined, BOUND));
    await screen.findByText("Worktree overlay", undefined, BOUND);
    const { registrations } = await plugin.until(indexed(2));
    fireEvent.click(await screen.findByLabelText("Reindex workspace", undefined, BOUND));
    appendFileSync(path.join(worktree, "sessions.py"), "def renew(session):\n    session.touch()\n");
    await plugin.until(({ registrations: now }) => (now.find(({ id }) => id === "wks_2")?.embeddedChunks ?? 0) > 0);
    const found = (await invoke("semantic-index.workspace-status", { path: worktree })) as RegistrationStatus;
    const absent = await invoke("semantic-index.workspace-status", { path: path.join(code, "nowhere") });
    const inUse = invoke("semantic-index.release", { id: "prj_1:primary" });
    await expect(inUse).rejects.toThrow("wks_2");
    fireEvent.click(await screen.findByLabelText("Release workspace index", undefined, BOUND));
    fireEvent.click(await screen.findByLabelText("Confirm release of workspace index"));
    await screen.findByLabelText("Register workspace semantic index", undefined, BOUND);
    const { pid } = holder(path.join(code, "cell"));
    const exit = await host.stop();

    expect(registrations.map(({ id, kind }) => `${id} ${kind}`)).toEqual(["prj_1:primary primary", "wks_2 worktree"]);
    expect(found).toMatchObject({ id: "wks_2", baselinePath: primary, path: worktree });
    expect(absent).toBeNull();
    expect(exit).toEqual({ code: 0, signal: null });
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    expect(host.log.join("\n")).not.toMatch(/-token-of-the-test/);
    expect(host.log.join("\n")).toMatch(/standard input has ended/);
  });

  test("is started again when it is killed, and still knows what was registered", async () => {
    const plugin = await world.plugin(configured());
    await plugin.host.invoke("semantic-index.register", { id: "shop", path: primary });
    await plugin.until(indexed(1));
    const state = path.join(code, "cell");
    const { pid } = holder(state);

    const lost = plugin.until(({ phase }) => phase === "degraded");
    process.kill(pid, "SIGKILL");
    expect((await lost).message).toBe("The semantic index service ended by SIGKILL. It is being started again.");
    await plugin.until(indexed(1));

    expect(holder(state).pid).not.toBe(pid);
  });

  test("that runs without configuration is found, used, and left alone", async () => {
    const own = world.environment({ SEMANTIC_INDEX_PROGRAM: PROGRAM, SEMANTIC_INDEX_ROOTS: primary });
    const first = await world.plugin(own);
    await first.until(indexed(1));
    const { pid } = holder(world.state);

    const second = await world.plugin(world.environment({ SEMANTIC_INDEX_PROGRAM: "no-such-program" }));
    await second.until(indexed(1));
    await second.host.stop();

    expect(holder(world.state).pid).toBe(pid);
    expect((await first.status()).phase).toBe("ready");
  });

  test("refuses what it must, in sentences that reach the caller whole, over a Unix socket, too", async () => {
    const plugin = await world.plugin(configured({ socket: path.join(code, "cell.socket") }));

    const outside = plugin.host.invoke("semantic-index.register", { id: "etc", path: "/etc" });
    await expect(outside).rejects.toThrow("/etc lies outside of the directories that may be indexed");
    const unknown = plugin.host.invoke("semantic-index.reindex", { id: "nobody" });
    await expect(unknown).rejects.toThrow(/nobody/);
  });
});
