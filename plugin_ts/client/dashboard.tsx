/** The dashboard: the service on one host, and every registration that it keeps. */

import type { PluginSurfaceProps } from "@getpaseo/plugin/client";
import { useState } from "react";
import { ScrollView, Text, View } from "react-native";
import type { ServiceStatus } from "../shared/status";
import { useAction, useLiveStatus } from "./live";
import { Button, Failure, Loading } from "./parts";
import { RegistrationCard } from "./registration-card";
import { type Look, stylesFor, tone } from "./styles";

export function Dashboard({ theme, layout, host }: PluginSurfaceProps) {
  const look = { theme, layout };
  const styles = stylesFor(look);
  const { status, error, refresh } = useLiveStatus();
  const [refused, setRefused] = useState<string | null>(null);
  const refreshing = useAction(refresh, setRefused);
  const failure = error ?? refused;
  return (
    <ScrollView style={styles.screen} contentContainerStyle={styles.content}>
      <View style={styles.spread}>
        <View>
          <Text accessibilityRole="header" style={styles.title}>
            Semantic index
          </Text>
          <Text style={styles.muted}>{host.label}</Text>
        </View>
        <Button
          {...look}
          title="Refresh"
          label="Refresh semantic index status"
          isBusy={refreshing.isRunning}
          onPress={() => void refreshing.run()}
        />
      </View>
      {failure !== null && <Failure {...look}>{failure}</Failure>}
      {status === null ? (
        failure === null && <Loading {...look} label="Loading index status" />
      ) : (
        <Service {...look} status={status} />
      )}
    </ScrollView>
  );
}

function Service({ status, ...look }: Look & { readonly status: ServiceStatus }) {
  const styles = stylesFor(look);
  return (
    <>
      <View aria-live="polite">
        <Text style={status.phase === "degraded" ? styles.danger : styles.text} selectable>
          {status.message}
        </Text>
      </View>
      <View style={styles.row}>
        <Metric {...look} name="Phase" value={status.phase} color={tone(look.theme, status.phase)} />
        <Metric {...look} name="Active indexes" value={String(status.activeManagers)} />
        <Metric {...look} name="MCP sessions" value={String(status.mcpSessions)} />
      </View>
      <Health {...look} status={status} />
      {status.registrations.map((registration) => (
        <RegistrationCard {...look} key={registration.id} registration={registration} />
      ))}
      {status.registrations.length === 0 && status.phase === "ready" && (
        <Text style={styles.muted}>
          No workspace is registered yet. Open a workspace's semantic index panel to register it.
        </Text>
      )}
    </>
  );
}

interface MetricProps extends Look {
  readonly name: string;
  readonly value: string;
  readonly color?: string;
}

function Metric({ name, value, color, ...look }: MetricProps) {
  const styles = stylesFor(look);
  return (
    <View style={styles.metric}>
      <Text style={styles.muted}>{name}</Text>
      <Text style={color === undefined ? styles.heading : { ...styles.heading, color }}>{value}</Text>
    </View>
  );
}

/** What the service depends on and cannot reach; nothing while all is well. */
function Health({ status, ...look }: Look & { readonly status: ServiceStatus }) {
  const { dependencies, grammars } = status;
  const faults = Object.entries(dependencies ?? {})
    .filter(([, dependency]) => !dependency.reachable)
    .map(([name, dependency]) => dependency.lastError ?? `The ${name} does not answer.`);
  const missing = grammars?.missing ?? [];
  if (missing.length > 0) faults.push(`Grammars that do not load: ${missing.join(", ")}.`);
  return faults.map((fault) => (
    <Failure {...look} key={fault}>
      {fault}
    </Failure>
  ));
}
