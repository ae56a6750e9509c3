/** How things look. Every colour is the theme's: the person's choice in Paseo holds here too. */

import type { PluginSurfaceProps, PluginTheme } from "@getpaseo/plugin/client";
import type { Style } from "react-native";
import type { RegistrationStatus, ServiceStatus } from "../shared/status";

export type Look = Pick<PluginSurfaceProps, "theme" | "layout">;

export interface Styles {
  readonly screen: Style;
  readonly content: Style;
  readonly row: Style;
  readonly spread: Style;
  readonly card: Style;
  readonly metric: Style;
  readonly title: Style;
  readonly heading: Style;
  readonly text: Style;
  readonly muted: Style;
  readonly danger: Style;
  readonly warning: Style;
  readonly track: Style;
}

export function stylesFor({ theme: { colors }, layout: { compact } }: Look): Styles {
  const padding = compact ? 12 : 20;
  const text = { color: colors.foreground, fontSize: 14 };
  return {
    screen: { flex: 1, backgroundColor: colors.surface0 },
    content: { padding, gap: padding },
    row: { flexDirection: "row", flexWrap: "wrap", alignItems: "center", gap: 8 },
    spread: { flexDirection: "row", flexWrap: "wrap", alignItems: "center", justifyContent: "space-between", gap: 8 },
    card: {
      padding: compact ? 12 : 16,
      gap: 8,
      borderWidth: 1,
      borderRadius: 8,
      borderColor: colors.border,
      backgroundColor: colors.surface1,
    },
    metric: { flexGrow: 1, minWidth: 96, padding: 12, gap: 4, borderRadius: 8, backgroundColor: colors.surface2 },
    title: { color: colors.foreground, fontSize: 18, fontWeight: "600" },
    heading: { color: colors.foreground, fontSize: 15, fontWeight: "600", flexShrink: 1 },
    text,
    muted: { color: colors.foregroundMuted, fontSize: 13, flexShrink: 1 },
    danger: { ...text, color: colors.statusDanger },
    warning: { ...text, color: colors.statusWarning },
    track: { height: 6, borderRadius: 3, overflow: "hidden", backgroundColor: colors.surface2 },
  };
}

/** The colour of a phase or a state; the word itself is always there to be read. */
export function tone(theme: PluginTheme, of: ServiceStatus["phase"] | RegistrationStatus["state"]): string {
  const { statusSuccess, statusWarning, statusDanger, foregroundMuted } = theme.colors;
  switch (of) {
    case "ready":
    case "Indexed":
      return statusSuccess;
    case "degraded":
    case "Error":
      return statusDanger;
    case "starting":
    case "stopping":
    case "Indexing":
      return statusWarning;
    case "stopped":
    case "Standby":
      return foregroundMuted;
  }
}
