// @vitest-environment jsdom
/** The panel of a workspace, as a person uses it. */

import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { registration, service } from "../doubles/statuses";
import { App, settled, type Workspace } from "../host/app";
import { Scripted } from "./scripted";

const PRIMARY: Workspace = {
  id: "wks_0000000000000001",
  projectId: "prj_0000000000000001",
  projectRootPath: "/code/shop",
  directory: "/code/shop",
  kind: "local_checkout",
  name: "shop",
};
const WORKTREE: Workspace = {
  ...PRIMARY,
  id: "wks_0000000000000002",
  directory: "/trees/fix",
  kind: "worktree",
  name: "fix",
};

let app: App;
beforeEach(() => {
  app = App.load();
});
afterEach(cleanup);

async function open(server: Scripted, workspace: Workspace): Promise<void> {
  app.panel("semantic-index-workspace", server.invoke, workspace);
  await settled();
}

async function press(label: string): Promise<void> {
  fireEvent.click(screen.getByLabelText(label));
  await settled();
}

/** A server side that registers, releases and reindexes. */
function working(...registrations: ReturnType<typeof registration>[]): Scripted {
  const server = new Scripted(service({ registrations }));
  server.answers["semantic-index.register"] = (input: { id: string; path: string; baselinePath?: string }) =>
    registration({ ...input, state: "Indexing", message: `registered ${input.id}`, percent: 0 });
  server.answers["semantic-index.release"] = ({ id }: { id: string }) => ({ released: id });
  server.answers["semantic-index.reindex"] = ({ id }: { id: string }) => ({
    id: "00000000-0000-4000-8000-000000000000",
    registrationId: id,
    kind: "reindex",
    state: "running",
    startedAt: "2026-11-30T12:00:00Z",
  });
  return server;
}

test("it shows that it is loading until the service has told what is registered", async () => {
  const server = working();
  server.answers["semantic-index.workspace-status"] = () => server.hold("workspace-status");

  await open(server, PRIMARY);

  screen.getByLabelText("Loading workspace index");
  screen.getByText("shop");
});

test("a checkout is registered under the workspace's id, and its progress is shown at once", async () => {
  const server = working();
  await open(server, PRIMARY);

  await press("Register workspace semantic index");

  expect(server.actions).toEqual([
    { method: "semantic-index.register", input: { id: PRIMARY.id, path: "/code/shop" } },
  ]);
  screen.getByText(`registered ${PRIMARY.id}`);
});

test("a worktree is registered after its primary checkout, which is its baseline", async () => {
  const server = working();
  await open(server, WORKTREE);

  await press("Register workspace semantic index");

  expect(server.actions.map(({ input }) => input)).toEqual([
    { id: "prj_0000000000000001:primary", path: "/code/shop" },
    { id: WORKTREE.id, path: "/trees/fix", baselinePath: "/code/shop" },
  ]);
});

test("a primary that is refused is told, and the worktree is not registered without it", async () => {
  const server = working();
  server.answers["semantic-index.register"] = () =>
    Promise.reject(new Error("/code/shop lies outside of the directories that may be indexed."));
  await open(server, WORKTREE);

  await press("Register workspace semantic index");

  expect(server.actions).toHaveLength(1);
  expect(screen.getByRole("alert").textContent).toBe("/code/shop lies outside of the directories that may be indexed.");
});

test("progress that is pushed is shown", async () => {
  const at = (percent: number) =>
    registration({
      id: PRIMARY.id,
      path: "/code/shop",
      state: "Indexing",
      percent,
      totalItems: 100,
      processedItems: percent,
    });
  const server = working(at(10));
  await open(server, PRIMARY);
  screen.getByText("10 / 100 files, 10%");

  server.change(service({ registrations: [at(60)] }));
  await settled();

  screen.getByText("60 / 100 files, 60%");
});

test("the workspace's own registration is shown, not another one of the same directory", async () => {
  const other = registration({ id: "another", path: "/code/shop" });
  const own = registration({ id: PRIMARY.id, path: "/code/shop" });
  const server = working(other, own);
  await open(server, PRIMARY);

  await press("Reindex workspace");

  expect(server.actions).toEqual([{ method: "semantic-index.reindex", input: { id: PRIMARY.id } }]);
});

test("another registration of the directory is named before it is released", async () => {
  const server = working(registration({ id: "another", path: "/code/shop" }));
  await open(server, PRIMARY);

  await press("Release workspace index");

  screen.getByText("Release another? Its index stays, for when it is registered again.");
});

test("a release is confirmed first, and can be thought better of", async () => {
  const server = working(registration({ id: PRIMARY.id, path: "/code/shop" }));
  await open(server, PRIMARY);

  await press("Release workspace index");
  expect(screen.queryByLabelText("Reindex workspace")).toBeNull();
  await press("Cancel release");

  screen.getByLabelText("Release workspace index");
  expect(server.actions).toEqual([]);
});

test.each([
  ["a checkout keeps", PRIMARY, false],
  ["a worktree deletes", WORKTREE, true],
])("releasing %s its index", async (_, workspace, purge) => {
  const server = working(registration({ id: workspace.id, path: workspace.directory }));
  await open(server, workspace);

  await press("Release workspace index");
  await press("Confirm release of workspace index");

  expect(server.actions).toEqual([{ method: "semantic-index.release", input: { id: workspace.id, purge } }]);
  screen.getByLabelText("Register workspace semantic index");
});

test("a release that is refused is told in the service's words, and can be tried again", async () => {
  const server = working(registration({ id: PRIMARY.id, path: "/code/shop" }));
  server.answers["semantic-index.release"] = () =>
    Promise.reject(new Error("wks_2 still builds on it: release that first."));
  await open(server, PRIMARY);

  await press("Release workspace index");
  await press("Confirm release of workspace index");

  expect(screen.getByRole("alert").textContent).toBe("wks_2 still builds on it: release that first.");
  screen.getByLabelText("Release workspace index");
});

test("while a release is under way it can be neither repeated nor cancelled", async () => {
  const server = working(registration({ id: PRIMARY.id, path: "/code/shop" }));
  server.answers["semantic-index.release"] = () => server.hold("release");
  await open(server, PRIMARY);
  await press("Release workspace index");

  await press("Confirm release of workspace index");
  await press("Confirm release of workspace index");

  expect(server.actions).toHaveLength(1);
  expect(screen.queryByLabelText("Cancel release")).toBeNull();
});

test("why the service is not ready is said", async () => {
  const server = working();
  server.change(service({ phase: "degraded", message: "SEMANTIC_INDEX_CONFIG_FILE is required" }));
  server.answers["semantic-index.workspace-status"] = () =>
    Promise.reject(new Error("SEMANTIC_INDEX_CONFIG_FILE is required"));

  await open(server, PRIMARY);

  expect(screen.getAllByText("SEMANTIC_INDEX_CONFIG_FILE is required")).toHaveLength(1);
  expect(screen.queryByLabelText("Register workspace semantic index")).toBeNull();
});
