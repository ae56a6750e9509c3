/** The server side as Paseo runs it: compiled, in a process of its own, with a real program and real sockets. */

import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ServiceDouble } from "../doubles/service";
import { registration } from "../doubles/statuses";
import { built } from "../host/built";
import { PLUGIN } from "../host/plugin-host";
import { TOKEN, World } from "../world";

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.end());

test("the plugin serves the procedures of the contract, and no others", async () => {
  const { host } = await world.plugin(world.configured());

  expect(host.methods).toEqual([
    "semantic-index.register",
    "semantic-index.reindex",
    "semantic-index.release",
    "semantic-index.status",
    "semantic-index.watch",
    "semantic-index.workspace-status",
  ]);
});

test("the service is started with a life line, and what it pushes is told to whoever watches", async () => {
  const subject = await world.plugin(world.configured());
  await subject.ready();

  const change = subject.until(({ registrations }) => registrations[0]?.percent === 40);
  await world.double("double.change", { registrations: [registration({ id: "a", state: "Indexing", percent: 40 })] });

  expect((await change).registrations[0]?.state).toBe("Indexing");
  expect(world.starts()[0]).toContain("serve --exit-on-stdin-eof --log-format text --config");
});

test("the status answers at once while the service has not greeted, and other calls wait for it", async () => {
  world.behave({ mute: true });
  const subject = await world.plugin(world.configured());

  const status = await subject.status();
  const waiting = subject.host.invoke("semantic-index.reindex", { id: "a" });
  waiting.catch(() => undefined);

  expect(status).toMatchObject({
    phase: "starting",
    message: "Semantic index plugin is loading configuration.",
    version: "0.1.0",
    registrations: [],
    activeManagers: 0,
    mcpSessions: 0,
  });
  await subject.host.stop();
  await expect(waiting).rejects.toThrow("The semantic index plugin is stopping.");
});

test("a start that fails is told as degraded with the service's sentence, refuses calls with it, and is logged once", async () => {
  world.behave({ refuse: { code: 2, sentence: "allowedRoots: name at least one directory that may be indexed" } });
  const subject = await world.plugin(world.configured());

  const status = await subject.until(({ phase }) => phase === "degraded");
  const refused = subject.host.invoke("semantic-index.workspace-status", { path: "/code" });

  expect(status).toMatchObject({
    message: "allowedRoots: name at least one directory that may be indexed",
    registrations: [],
  });
  await expect(refused).rejects.toThrow("allowedRoots: name at least one directory that may be indexed");
  await subject.until(() => world.pids().length > 1); // it is tried again, and again
  await subject.host.stop();
  expect(
    subject.host.log.filter((line) => line.startsWith("[semantic-index] startup failed: allowedRoots")),
  ).toHaveLength(1);
});

test("a service that dies as soon as it is asked has failed to start, for the reason that it gives", async () => {
  world.behave({ fragile: "the state is damaged" });
  const subject = await world.plugin(world.configured());

  const { message } = await subject.until(({ phase }) => phase === "degraded");

  expect(message).toBe("the state is damaged");
  await expect(subject.host.invoke("semantic-index.reindex", { id: "a" })).rejects.toThrow(/^the state is damaged$/);
});

test("a start that failed is tried again until it succeeds, without the plugin being reloaded", async () => {
  world.behave({ refuse: { code: 1, sentence: "the disk is full" } });
  const subject = await world.plugin(world.configured());
  await subject.until(({ phase }) => phase === "degraded");

  world.behave({});

  expect((await subject.ready()).message).toBe("Semantic index service is ready.");
});

test("calls that came while the service was starting are answered once it runs", async () => {
  const subject = await world.plugin(world.configured());

  const registered = await subject.host.invoke("semantic-index.register", { id: "wks_1", path: "/code/a" });
  const found = await subject.host.invoke("semantic-index.workspace-status", { path: "/code/a" });
  const absent = await subject.host.invoke("semantic-index.workspace-status", { path: "/code/b" });
  const operation = await subject.host.invoke("semantic-index.reindex", { id: "wks_1" });
  const released = await subject.host.invoke("semantic-index.release", { id: "wks_1", purge: true });

  expect(registered).toMatchObject({ id: "wks_1", path: "/code/a" });
  expect(found).toEqual(registered);
  expect(absent).toBeNull();
  expect(operation).toMatchObject({ registrationId: "wks_1", state: "running" });
  expect(released).toMatchObject({ released: "wks_1" });
});

test("a refusal of the service reaches the caller as its own sentence", async () => {
  const subject = await world.plugin(world.configured());

  const refused = subject.host.invoke("semantic-index.register", { id: "b", path: "/code/b", baselinePath: "/code/a" });

  await expect(refused).rejects.toThrow(/^The primary baseline must be registered before its worktree$/);
});

test("a service that dies is started again, and calls of the time between are answered by its successor", async () => {
  const subject = await world.plugin(world.configured());
  await subject.ready();
  const [first] = world.pids();

  const lost = subject.until(({ phase }) => phase === "degraded");
  await world.kill(7);
  const status = await lost;
  const answered = await subject.host.invoke("semantic-index.workspace-status", { path: "/code" });

  expect(status.message).toBe("The semantic index service ended with exit code 7. It is being started again.");
  expect(answered).toBeNull();
  expect(world.pids()).toHaveLength(2);
  expect(world.pids()[1]).not.toBe(first);
});

test("a service that runs already is used, and is not ended with the plugin", async () => {
  const running = new ServiceDouble(TOKEN);
  const url = await running.listen();
  world.hold(url);
  const subject = await world.plugin(world.configured());

  await subject.ready();
  await subject.host.stop();

  expect(world.starts()).toEqual([]);
  expect(running.calls.map(({ method }) => method)).toEqual(["semantic-index.status", "semantic-index.watch"]);
  await running.close();
});

test("a running service without configuration is found by its discovery file, over a Unix socket, too", async () => {
  const running = new ServiceDouble("made-at-its-first-start");
  const url = await running.listen(path.join(world.directory, "a:b.socket"));
  const tokenFile = path.join(world.state, "control.token");
  writeFileSync(tokenFile, "made-at-its-first-start\n", { mode: 0o600 });
  world.hold(url);
  writeFileSync(
    path.join(world.state, "cell.json"),
    JSON.stringify({ url, pid: process.pid, controlTokenFile: tokenFile }),
  );
  const subject = await world.plugin(world.environment({}));

  await subject.ready();

  expect(world.starts()).toEqual([]);
  expect(running.connections).toBe(1);
  await subject.host.stop();
  await running.close();
});

test("where nobody listens at the address that the lock file tells, the plugin starts a service of its own", async () => {
  const free = new ServiceDouble(TOKEN);
  const url = await free.listen();
  await free.close();
  world.hold(url);
  world.behave({ refuse: { code: 2, sentence: "in use by another process" } });
  const subject = await world.plugin(world.configured());

  const status = await subject.until(({ phase }) => phase === "degraded");

  expect(status.message).toBe("in use by another process");
});

test("a service that is about to end is not used: its successor waits for it by itself", async () => {
  const ending = new ServiceDouble(TOKEN);
  const url = await ending.listen();
  world.hold(url, "stopping");
  const subject = await world.plugin(world.configured());

  await subject.until(({ phase }) => phase === "degraded"); // the double does not wait, as the real one would

  expect(ending.calls).toEqual([]);
  expect(world.pids()).not.toHaveLength(0);
  await subject.host.stop();
  await ending.close();
});

test("a token that the running service refuses is a failure that says so, and no second service is started", async () => {
  const running = new ServiceDouble("another-token-altogether");
  const url = await running.listen();
  world.hold(url);
  const subject = await world.plugin(world.configured());

  const status = await subject.until(({ phase }) => phase === "degraded");

  expect(status.message).toContain("refuses the control token");
  expect(world.starts()).toEqual([]);
  await subject.host.stop();
  await running.close();
});

test("when a service that was only used ends, the plugin starts its own", async () => {
  const running = new ServiceDouble(TOKEN);
  const url = await running.listen();
  world.hold(url);
  const subject = await world.plugin(world.configured());
  await subject.ready();

  const lost = subject.until(({ phase }) => phase === "degraded");
  writeFileSync(world.lock, JSON.stringify({ pid: 2 ** 22 + 1, phase: "stopping", url }));
  running.hangUp(1001);
  await running.close();
  await lost;
  await subject.ready();

  expect(world.pids()).toHaveLength(1);
});

test("a connection that is lost is opened again to the same service", async () => {
  const running = new ServiceDouble(TOKEN);
  const url = await running.listen();
  world.hold(url);
  const subject = await world.plugin(world.configured());
  await subject.host.invoke("semantic-index.workspace-status", { path: "/code" }); // the status is followed by then

  const lost = subject.until(({ phase }) => phase === "degraded");
  running.hangUp(1013);
  expect((await lost).message).toMatch(/has ended \(1013\)\. The plugin connects again\.$/);
  await subject.ready();

  expect(running.connections).toBe(1);
  expect(world.starts()).toEqual([]);
  await subject.host.stop();
  await running.close();
});

test("with directories instead of a configuration they are what the service is started for", async () => {
  const environment = world.environment({
    SEMANTIC_INDEX_ROOTS: "/code/a:/code/b",
    SEMANTIC_INDEX_CONTROL_TOKEN: TOKEN,
  });
  const subject = await world.plugin(environment);

  await subject.ready();

  expect(world.starts()[0]).toContain("--root /code/a --root /code/b");
});

test.each([
  ["nothing that says what to index", {}, /^SEMANTIC_INDEX_CONFIG_FILE is required, or SEMANTIC_INDEX_ROOTS: /],
  [
    "a configuration file that is missing",
    { SEMANTIC_INDEX_CONFIG_FILE: "/nowhere.json" },
    /\/nowhere\.json, which cannot be read \(ENOENT\)\.$/,
  ],
  [
    "a program that is missing",
    { SEMANTIC_INDEX_ROOTS: "/code", SEMANTIC_INDEX_PROGRAM: "no-such-program" },
    /^no-such-program cannot be started \(ENOENT\): set SEMANTIC_INDEX_PROGRAM/,
  ],
])("%s degrades the plugin with a sentence that says what to set", async (_, extra, sentence) => {
  const subject = await world.plugin(world.environment(extra));

  const { message } = await subject.until(({ phase }) => phase === "degraded");

  expect(message).toMatch(sentence);
});

test("no token that the plugin holds is ever in the log, even if the service prints it", async () => {
  const subject = await world.plugin(world.configured({ SEMANTIC_INDEX_MCP_TOKEN: "mcp-token-of-the-test" }));
  await subject.ready();

  await world.double("double.print", { line: `semindex: refused ${TOKEN} and mcp-token-of-the-test` });
  await world.kill(1);
  const { message } = await subject.until(({ phase }) => phase === "degraded");
  await subject.host.stop();

  expect(message).toContain("refused … and …");
  expect(subject.host.log.join("\n")).toContain("semindex: refused … and …");
  expect(subject.host.log.join("\n")).not.toMatch(/(?:control|mcp)-token-of-the-test/);
});

test("the client's bundle holds nothing of the server side, and the version is told in one place", () => {
  const [client, server] = [readFileSync(built("client.js"), "utf8"), readFileSync(built("server.js"), "utf8")];
  const { version } = JSON.parse(readFileSync(path.join(PLUGIN, "package.json"), "utf8")) as { version: string };

  expect(client).not.toMatch(/TOKEN|child_process|process\.env/);
  expect(server).toContain(`VERSION = "${version}"`);
});
