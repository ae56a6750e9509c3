// @vitest-environment jsdom
/** The dashboard, as a person sees it. */

import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { registration, service } from "../doubles/statuses";
import { App, COLORS, settled } from "../host/app";
import { Scripted } from "./scripted";

let app: App;
beforeEach(() => {
  app = App.load();
});
afterEach(() => {
  cleanup();
  vi.useRealTimers();
});

async function open(server: Scripted): Promise<void> {
  app.surface("semantic-index", server.invoke);
  await settled();
}

test("it names the host, the service's message and three metrics", async () => {
  const one = registration({ id: "one" });
  await open(new Scripted(service({ registrations: [one], activeManagers: 1, mcpSessions: 3 })));

  for (const text of [
    "Workstation",
    "Semantic index service is ready.",
    "Phase",
    "ready",
    "Active indexes",
    "MCP sessions",
    "3",
  ]) {
    screen.getByText(text);
  }
});

test("it shows that it is loading until the first status is told", async () => {
  const server = new Scripted(service());
  server.answers["semantic-index.watch"] = () => server.hold("watch");

  await open(server);

  screen.getByLabelText("Loading index status");
});

test("each registration has a card with its kind, state, progress and last error", async () => {
  const primary = registration({
    id: "prj_1:primary",
    state: "Indexing",
    processedItems: 3,
    totalItems: 8,
    percent: 37.5,
    message: "Indexed 3 / 8 files (38%).",
  });
  const worktree = registration({
    id: "wks_1",
    baselinePath: "/code/primary",
    state: "Error",
    lastError: "The directory is missing.",
  });
  await open(new Scripted(service({ registrations: [primary, worktree] })));

  for (const text of [
    "prj_1:primary",
    "Primary baseline",
    "Indexing",
    "Indexed 3 / 8 files (38%).",
    "3 / 8 files, 38%",
  ])
    screen.getByText(text);
  for (const text of ["wks_1", "Worktree overlay", "Error", "The directory is missing."]) screen.getByText(text);
  expect(screen.getByRole("progressbar", { name: "Progress of prj_1:primary" }).getAttribute("aria-valuenow")).toBe(
    "37.5",
  );
});

test("progress that is pushed is shown without anything being pressed", async () => {
  const at = (percent: number) =>
    service({
      registrations: [registration({ id: "a", state: "Indexing", processedItems: percent, totalItems: 100, percent })],
    });
  const server = new Scripted(at(0));
  await open(server);

  server.change(at(40));
  await settled();
  screen.getByText("40 / 100 files, 40%");
  server.change(at(90));
  await settled();

  screen.getByText("90 / 100 files, 90%");
});

test("it says so when no workspace is registered, and does not guess while the service starts", async () => {
  const server = new Scripted(
    service({ phase: "starting", message: "Semantic index plugin is loading configuration." }),
  );
  await open(server);
  expect(screen.queryByText(/No workspace is registered/)).toBeNull();

  server.change(service());
  await settled();

  screen.getByText(/No workspace is registered/);
});

test("a dependency that does not answer is named with its error, and files that failed with an example", async () => {
  const embedder = { reachable: false, lastError: "The embedding endpoint does not answer." };
  const failed = { count: 2, first: [{ path: "src/a.py", reason: "too deep" }] };
  const status = service({
    phase: "degraded",
    dependencies: { embedder, store: { reachable: true } },
    registrations: [registration({ id: "a", failedFiles: failed, pendingFiles: 1 })],
  });
  await open(new Scripted(status));

  expect(screen.getByRole("alert").textContent).toBe("The embedding endpoint does not answer.");
  screen.getByText("1 file not up to date yet. 2 files could not be indexed. src/a.py: too deep");
});

test("the refresh button asks for the status", async () => {
  const server = new Scripted(service());
  await open(server);
  server.answers["semantic-index.status"] = () => service({ message: "asked anew" });

  fireEvent.click(screen.getByLabelText("Refresh semantic index status"));
  await settled();

  screen.getByText("asked anew");
});

test("where requests cannot be held the status is asked for at intervals", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const server = new Scripted(service({ message: "first" }));
  server.answers["semantic-index.watch"] = () => Promise.reject(new Error("Plugin RPC timed out"));
  await open(server);
  screen.getByText("first");

  server.answers["semantic-index.status"] = () => service({ message: "second" });
  vi.advanceTimersByTime(2_000);
  await settled();

  screen.getByText("second");
  expect(server.calls.filter(({ method }) => method === "semantic-index.watch")).toHaveLength(1);
});

test("after some time of asking it is tried again to wait", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const server = new Scripted(service());
  const watch = server.answers["semantic-index.watch"];
  server.answers["semantic-index.watch"] = () => Promise.reject(new Error("Plugin process exited"));
  await open(server);
  if (watch !== undefined) server.answers["semantic-index.watch"] = watch;

  for (let second = 0; second < 30; second += 2) {
    vi.advanceTimersByTime(2_000);
    await settled();
  }
  server.change(service({ message: "pushed" }));
  await settled();

  screen.getByText("pushed");
});

test("what went wrong is shown as the sentence alone, and goes away when it is over", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const server = new Scripted(service());
  server.answers["semantic-index.watch"] = () => Promise.reject(new Error("The plugin is stopping."));
  const ask = server.answers["semantic-index.status"];
  server.answers["semantic-index.status"] = () => Promise.reject(new Error("The plugin is stopping."));
  await open(server);
  expect(screen.getByRole("alert").textContent).toBe("The plugin is stopping.");

  if (ask !== undefined) server.answers["semantic-index.status"] = ask;
  vi.advanceTimersByTime(2_000);
  await settled();

  expect(screen.queryByRole("alert")).toBeNull();
});

test("a dashboard that is closed stops asking", async () => {
  const server = new Scripted(service());
  const view = app.surface("semantic-index", server.invoke);
  await settled();
  view.unmount();
  const before = server.calls.length;

  server.change(service({ message: "unseen" }));
  await settled();

  expect(server.calls).toHaveLength(before);
});

test("every colour is the theme's", async () => {
  const status = service({
    phase: "degraded",
    registrations: ["Standby", "Indexing", "Indexed", "Error"].map((state) =>
      registration({ id: state, state: state as "Error", lastError: "broken" }),
    ),
  });
  await open(new Scripted(status));

  const theirs = new Set([...Object.values(COLORS), "rgba(0, 0, 0, 0)", ""]);
  const seen = new Set<string>();
  for (const element of Array.from(document.body.querySelectorAll("*"))) {
    const style = getComputedStyle(element);
    seen.add(style.backgroundColor);
    if (element.children.length === 0 && element.textContent !== "") seen.add(style.color);
    if (style.borderTopWidth === "1px") seen.add(style.borderTopColor);
  }
  expect(seen.size).toBeGreaterThan(5);
  expect([...seen].filter((color) => !theirs.has(color))).toEqual([]);
});
