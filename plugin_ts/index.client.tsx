/** Entry of the plugin's client side: what it adds to the Paseo app. */

import type { PluginClientContext } from "@getpaseo/plugin/client";
import { Dashboard } from "./client/dashboard";
import { WorkspacePanel } from "./client/workspace-panel";

const SURFACE = "semantic-index";
const PANEL = "semantic-index-workspace";
const LOOK = { title: "Semantic index", icon: "ScanSearch" };

export default function contribute(client: PluginClientContext): () => void {
  client.addSurface(SURFACE, Dashboard);
  client.addSidebarItem({ id: "semantic-index", ...LOOK, surface: SURFACE });
  client.addWorkspacePanel({ id: PANEL, ...LOOK, context: "workspace", Component: WorkspacePanel });
  client.addCommandCenterItem({
    id: "open-semantic-index",
    title: "Open semantic index dashboard",
    icon: LOOK.icon,
    keywords: ["code", "search", "indexing", "qdrant"],
    context: "global",
    onSelect: ({ openSurface }) => openSurface(SURFACE),
  });
  client.addCommandCenterItem({
    id: "open-workspace-semantic-index",
    title: "Open workspace semantic index",
    icon: LOOK.icon,
    keywords: ["code", "search", "indexing"],
    context: "workspace",
    onSelect: ({ openPanel }) => openPanel(PANEL),
  });
  return () => undefined; // the host takes back what was added
}
