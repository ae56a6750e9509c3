/** The panel of a workspace: whether it is indexed, and the three things that can be done about that. */

import {
  type PluginWorkspacePanelProps,
  type PluginWorkspaceSnapshot,
  useRpc,
  useWorkspace,
} from "@getpaseo/plugin/client";
import { useState } from "react";
import { ScrollView, Text, View } from "react-native";
import { registerRpc, reindexRpc, releaseRpc } from "../shared/rpc";
import type { RegistrationStatus } from "../shared/status";
import { useAction, useLiveStatus, useRegistration } from "./live";
import { Button, Failure, Loading } from "./parts";
import { RegistrationCard } from "./registration-card";
import { type Look, stylesFor } from "./styles";

type Workspace = Pick<PluginWorkspaceSnapshot, "id" | "projectId" | "name" | "directory" | "projectRootPath" | "kind">;

function select({ id, projectId, name, directory, projectRootPath, kind }: PluginWorkspaceSnapshot): Workspace {
  return { id, projectId, name, directory, projectRootPath, kind };
}

export function WorkspacePanel(props: PluginWorkspacePanelProps) {
  // What is known of one workspace is not true of another.
  return <Panel key={props.workspaceId} {...props} />;
}

function Panel({ theme, layout, workspaceId }: PluginWorkspacePanelProps) {
  const look = { theme, layout };
  const styles = stylesFor(look);
  const workspace = useWorkspace(workspaceId, select);
  const live = useLiveStatus();
  const { registration, error, show } = useRegistration(workspaceId, workspace?.directory, live);
  const [refused, setRefused] = useState<string | null>(null);
  const isReady = workspace !== null && registration !== undefined;
  // The service says why it is not ready; while it is, there is nothing to add to the registration.
  const notice = live.status === null || live.status.phase === "ready" ? null : live.status.message;
  const failure = refused ?? error;
  return (
    <ScrollView style={styles.screen} contentContainerStyle={styles.content}>
      <View>
        <Text accessibilityRole="header" style={styles.title}>
          Semantic index
        </Text>
        {workspace !== null && <Text style={styles.muted}>{workspace.name}</Text>}
      </View>
      {notice !== null && notice !== failure && (
        <View aria-live="polite">
          <Text style={styles.muted}>{notice}</Text>
        </View>
      )}
      {failure !== null && <Failure {...look}>{failure}</Failure>}
      {!isReady && failure === null && <Loading {...look} label="Loading workspace index" />}
      {isReady && registration !== null && (
        <Registered {...look} workspace={workspace} registration={registration} show={show} fail={setRefused} />
      )}
      {isReady && registration === null && (
        <Unregistered {...look} workspace={workspace} show={show} fail={setRefused} />
      )}
    </ScrollView>
  );
}

interface PartProps extends Look {
  readonly workspace: Workspace;
  show(registration: RegistrationStatus | null): void;
  fail(sentence: string | null): void;
}

function Unregistered({ workspace, show, fail, ...look }: PartProps) {
  const register = useRpc(registerRpc);
  const registering = useAction(async () => {
    const { id, projectId, directory, projectRootPath } = workspace;
    if (workspace.kind !== "worktree") return show(await register({ id, path: directory }));
    // A worktree is an overlay of its primary checkout, which must be known first; saying so again changes nothing.
    await register({ id: `${projectId}:primary`, path: projectRootPath });
    show(await register({ id, path: directory, baselinePath: projectRootPath }));
  }, fail);
  return (
    <>
      <Text style={stylesFor(look).text}>This workspace is not registered for semantic indexing.</Text>
      <View style={stylesFor(look).row}>
        <Button
          {...look}
          kind="primary"
          title={registering.isRunning ? "Registering…" : "Register"}
          label="Register workspace semantic index"
          isBusy={registering.isRunning}
          onPress={() => void registering.run()}
        />
      </View>
    </>
  );
}

function Registered({
  workspace,
  registration,
  show,
  fail,
  ...look
}: PartProps & { readonly registration: RegistrationStatus }) {
  const styles = stylesFor(look);
  const reindex = useRpc(reindexRpc);
  const release = useRpc(releaseRpc);
  const [isAsking, setAsking] = useState(false);
  const { id } = registration;
  const purge = workspace.kind === "worktree";
  const reindexing = useAction(async () => {
    await reindex({ id });
  }, fail);
  const releasing = useAction(async () => {
    await release({ id, purge });
    show(null);
  }, fail);
  return (
    <>
      <RegistrationCard {...look} registration={registration} />
      {isAsking ? (
        <>
          <Text style={styles.text}>
            {purge
              ? `Release ${id} and delete its index?`
              : `Release ${id}? Its index stays, for when it is registered again.`}
          </Text>
          <View style={styles.row}>
            <Button
              {...look}
              kind="danger"
              title={releasing.isRunning ? "Releasing…" : "Release"}
              label="Confirm release of workspace index"
              isBusy={releasing.isRunning}
              onPress={() => void releasing.run().then(() => setAsking(false))}
            />
            {!releasing.isRunning && (
              <Button {...look} title="Cancel" label="Cancel release" onPress={() => setAsking(false)} />
            )}
          </View>
        </>
      ) : (
        <View style={styles.row}>
          <Button
            {...look}
            title={reindexing.isRunning ? "Starting…" : "Reindex"}
            label="Reindex workspace"
            isBusy={reindexing.isRunning}
            onPress={() => void reindexing.run()}
          />
          <Button {...look} title="Release" label="Release workspace index" onPress={() => setAsking(true)} />
        </View>
      )}
    </>
  );
}
