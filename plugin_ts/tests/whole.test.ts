// @vitest-environment jsdom
/** Both sides together: what the service pushes reaches the screen, through the plugin's process. */

import { cleanup, fireEvent, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { registration } from "./doubles/statuses";
import { App } from "./host/app";
import { World } from "./world";

const BOUND = { timeout: 10_000 };

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  cleanup();
  await world.end();
});

test("the dashboard follows the service from its start over its progress to its death and its return", async () => {
  const { host } = await world.plugin(world.configured());
  App.load().surface("semantic-index", (method, input) => host.invoke(method, input));

  await screen.findByText("Semantic index service is ready.", undefined, BOUND);
  const indexing = (percent: number): object => ({
    registrations: [registration({ id: "shop", state: "Indexing", percent, processedItems: percent, totalItems: 100 })],
  });
  await world.double("double.change", indexing(20));
  await screen.findByText("20 / 100 files, 20%", undefined, BOUND);
  await world.double("double.change", indexing(75));
  await screen.findByText("75 / 100 files, 75%", undefined, BOUND);
  await world.kill(3);
  await screen.findByText(/ended with exit code 3\. It is being started again\./, undefined, BOUND);
  await screen.findByText("Semantic index service is ready.", undefined, BOUND);

  expect(world.pids()).toHaveLength(2);
});

test("a worktree is registered from its panel, and can be again after somebody else has released it", async () => {
  const workspace = {
    id: "wks_2",
    projectId: "prj_1",
    projectRootPath: "/code",
    directory: "/tree",
    kind: "worktree",
    name: "fix",
  };
  const { host } = await world.plugin(world.configured());
  App.load().panel("semantic-index-workspace", (method, input) => host.invoke(method, input), workspace);

  fireEvent.click(await screen.findByLabelText("Register workspace semantic index", undefined, BOUND));
  await screen.findByText("Worktree overlay", undefined, BOUND);
  await world.double("semantic-index.release", { id: "wks_2" });
  fireEvent.click(await screen.findByLabelText("Register workspace semantic index", undefined, BOUND));
  await screen.findByText("Worktree overlay", undefined, BOUND);

  const calls = (await world.double("double.calls")) as { method: string; params: { id: string } }[];
  const registered = calls.filter(({ method }) => method === "semantic-index.register").map(({ params }) => params.id);
  expect(registered).toEqual(["prj_1:primary", "wks_2", "prj_1:primary", "wks_2"]);
});
