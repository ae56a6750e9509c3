/** The app's side of a plugin: evaluates the client bundle with the modules that Paseo supplies, and mounts what it adds. */

import { readFileSync } from "node:fs";
import { act, render, type RenderResult } from "@testing-library/react";
import * as React from "react";
import * as jsxRuntime from "react/jsx-runtime";
import * as ReactNative from "react-native-web";
import * as zod from "zod";
import { built } from "./built";
import { defineRpc } from "./sdk";

export type Invoke = (method: string, input: unknown) => Promise<unknown>;

interface Contract {
  readonly name: string;
  readonly input: zod.ZodType;
  readonly output: zod.ZodType;
}
interface Item {
  readonly id: string;
  readonly [field: string]: unknown;
}
export interface Workspace {
  readonly id: string;
  readonly projectId: string;
  readonly projectRootPath: string;
  readonly directory: string;
  readonly kind: string;
  readonly name: string;
}

/** Colours that nobody would write down by themselves: whatever else is seen did not come from the theme. */
export const COLORS = Object.fromEntries(
  [
    "surface0",
    "surface1",
    "surface2",
    "border",
    "foreground",
    "foregroundMuted",
    "accent",
    "accentForeground",
    "statusSuccess",
    "statusWarning",
    "statusDanger",
  ].map((name, index) => [name, `rgb(1, 2, ${index + 3})`]),
);

const Runtime = React.createContext<{ invoke: Invoke; workspaces: readonly Workspace[] }>({
  invoke: () => Promise.reject(new Error("no host")),
  workspaces: [],
});

function useRpc(contract: Contract): (input: unknown) => Promise<unknown> {
  const { invoke } = React.useContext(Runtime);
  return React.useCallback(
    async (input: unknown) => {
      try {
        return await contract.output.parseAsync(await invoke(contract.name, await contract.input.parseAsync(input)));
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        throw new Error(`Request failed: ${text} requestType=plugin.rpc.invoke.request code=handler_error`);
      }
    },
    [contract, invoke],
  );
}

function useWorkspace<T>(id: string, select: (workspace: Workspace) => T): T | null {
  const { workspaces } = React.useContext(Runtime);
  const workspace = workspaces.find((each) => each.id === id);
  const selected = workspace === undefined ? null : select(workspace);
  const key = JSON.stringify(selected);
  // The real one compares shallowly: the same fields are the same object.
  return React.useMemo(() => JSON.parse(key) as T | null, [key]);
}

export class App {
  readonly surfaces = new Map<string, React.ComponentType<object>>();
  readonly sidebar: Item[] = [];
  readonly panels: Item[] = [];
  readonly commands: Item[] = [];

  static load(): App {
    const app = new App();
    const evaluate = globalThis.eval;
    const factory = evaluate(readFileSync(built("client.js"), "utf8")) as (require: (name: string) => unknown) => {
      default: (context: object) => unknown;
    };
    const cleanup = factory(provide).default({
      addSurface: (id: string, component: React.ComponentType<object>) => app.surfaces.set(id, component),
      addSidebarItem: (item: Item) => app.sidebar.push(item),
      addWorkspacePanel: (panel: Item) => app.panels.push(panel),
      addCommandCenterItem: (command: Item) => app.commands.push(command),
    });
    if (typeof cleanup !== "function") throw new Error("Plugin contribution must return a cleanup function");
    return app;
  }

  surface(id: string, invoke: Invoke): RenderResult {
    const Surface = this.surfaces.get(id);
    if (Surface === undefined) throw new Error(`There is no surface ${id}`);
    return mount(<Surface {...host()} />, invoke, []);
  }

  panel(id: string, invoke: Invoke, workspace: Workspace): RenderResult {
    const Panel = this.panels.find((each) => each.id === id)?.Component as React.ComponentType<object> | undefined;
    if (Panel === undefined) throw new Error(`There is no panel ${id}`);
    return mount(<Panel {...host()} {...{ context: "workspace", workspaceId: workspace.id }} />, invoke, [workspace]);
  }
}

/** Let everything that is decided already reach the screen. */
export async function settled(): Promise<void> {
  await act(async () => {
    await new Promise((resolve) => setImmediate(resolve));
  });
}

function mount(element: React.ReactElement, invoke: Invoke, workspaces: readonly Workspace[]): RenderResult {
  return render(<Runtime.Provider value={{ invoke, workspaces }}>{element}</Runtime.Provider>);
}

function host(): object {
  return {
    theme: { colors: COLORS },
    host: { id: "host", label: "Workstation" },
    layout: { compact: false, platform: "web" },
  };
}

function provide(name: string): unknown {
  const modules: Record<string, unknown> = {
    react: React,
    "react/jsx-runtime": jsxRuntime,
    "react-native": ReactNative,
    zod,
    "@getpaseo/plugin": { defineRpc },
    "@getpaseo/plugin/client": { useRpc, useWorkspace },
  };
  if (!(name in modules)) throw new Error(`Module "${name}" is not available in plugin client code`);
  return modules[name];
}
