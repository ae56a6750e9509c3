// @vitest-environment jsdom
/** What the plugin adds to the app, by the names that the contract gives. */

import { expect, test, vi } from "vitest";
import { App } from "../host/app";

test("there is a surface, and a sidebar item that leads to it", () => {
  const app = App.load();

  expect([...app.surfaces.keys()]).toEqual(["semantic-index"]);
  expect(app.sidebar).toEqual([
    { id: "semantic-index", title: "Semantic index", icon: "ScanSearch", surface: "semantic-index" },
  ]);
});

test("there is a panel for workspaces", () => {
  const app = App.load();

  const look = { title: "Semantic index", icon: "ScanSearch" };
  expect(app.panels).toMatchObject([{ id: "semantic-index-workspace", ...look, context: "workspace" }]);
});

test("the command center opens the dashboard from anywhere, and the panel from a workspace", () => {
  const app = App.load();
  const openSurface = vi.fn();
  const openPanel = vi.fn();

  for (const command of app.commands) (command.onSelect as (context: object) => void)({ openSurface, openPanel });

  expect(app.commands).toMatchObject([
    {
      id: "open-semantic-index",
      title: "Open semantic index dashboard",
      icon: "ScanSearch",
      context: "global",
      keywords: ["code", "search", "indexing", "qdrant"],
    },
    {
      id: "open-workspace-semantic-index",
      title: "Open workspace semantic index",
      icon: "ScanSearch",
      context: "workspace",
      keywords: ["code", "search", "indexing"],
    },
  ]);
  expect(openSurface.mock.calls).toEqual([["semantic-index"]]);
  expect(openPanel.mock.calls).toEqual([["semantic-index-workspace"]]);
});
