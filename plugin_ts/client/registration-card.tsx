/** One registration: what it is, how far it has come, and what is wrong with it. */

import { Text, View } from "react-native";
import type { RegistrationStatus } from "../shared/status";
import { Failure, ProgressBar } from "./parts";
import { type Look, stylesFor, tone } from "./styles";

export function RegistrationCard({ registration, ...look }: Look & { readonly registration: RegistrationStatus }) {
  const styles = stylesFor(look);
  const color = tone(look.theme, registration.state);
  const { id, kind, state, message, processedItems, totalItems, percent, lastError } = registration;
  return (
    <View style={styles.card}>
      <View style={styles.spread}>
        <Text style={styles.heading} selectable>
          {id}
        </Text>
        <Text style={{ color, fontSize: 13, fontWeight: "600" }}>{state}</Text>
      </View>
      <Text style={styles.muted}>{kind === "primary" ? "Primary baseline" : "Worktree overlay"}</Text>
      <Text style={styles.muted} selectable>
        {registration.path}
      </Text>
      {message !== "" && message !== lastError && <Text style={styles.text}>{message}</Text>}
      <ProgressBar {...look} percent={percent} label={`Progress of ${id}`} color={color} />
      <Text style={styles.muted}>{`${processedItems} / ${totalItems} files, ${Math.round(percent)}%`}</Text>
      <Concerns {...look} registration={registration} />
      {lastError !== undefined && <Failure {...look}>{lastError}</Failure>}
    </View>
  );
}

/** What a person may want to know beyond the progress; nothing while all is well. */
function Concerns({ registration, ...look }: Look & { readonly registration: RegistrationStatus }) {
  const { lifecycle, pendingFiles = 0, failedFiles, operation } = registration;
  const concerns: string[] = [];
  if (lifecycle === "releasing") concerns.push("It is being released.");
  if (lifecycle === "stale") concerns.push("Its directory is gone.");
  if (operation?.state === "running") concerns.push(`A ${operation.kind} is under way.`);
  if (pendingFiles > 0) concerns.push(`${files(pendingFiles)} not up to date yet.`);
  if (failedFiles !== undefined && failedFiles.count > 0) {
    const [first] = failedFiles.first;
    const example = first === undefined ? "" : ` ${first.path}: ${first.reason}`;
    concerns.push(`${files(failedFiles.count)} could not be indexed.${example}`);
  }
  if (concerns.length === 0) return null;
  return <Text style={stylesFor(look).warning}>{concerns.join(" ")}</Text>;
}

function files(count: number): string {
  return count === 1 ? "1 file" : `${count} files`;
}
