/** React's view of what is live: the status of the service, and the registration of one workspace. */

import { useRpc } from "@getpaseo/plugin/client";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { statusRpc, watchRpc, workspaceStatusRpc } from "../shared/rpc";
import type { RegistrationStatus, ServiceStatus } from "../shared/status";
import { sentence } from "./errors";
import { ask, follow, type Source, type Viewer } from "./follow";

export interface Live {
  /** The last status that was told; null before the first. */
  readonly status: ServiceStatus | null;
  /** Why the status is not known any more; null while it is. */
  readonly error: string | null;
  /** Ask now. */
  refresh(): Promise<void>;
}

export function useLiveStatus(): Live {
  const watch = useRpc(watchRpc);
  const askStatus = useRpc(statusRpc);
  const [status, setStatus] = useState<ServiceStatus | null>(null);
  const [error, setError] = useState<string | null>(null);
  const mounted = useRef(new AbortController());

  const source = useMemo<Source>(
    () => ({
      watch: (since) => watch(since === undefined ? {} : { since }),
      ask: () => askStatus({}),
    }),
    [watch, askStatus],
  );
  const viewer = useMemo<Viewer>(
    () => ({
      show: (next) => {
        setStatus(next);
        setError(null);
      },
      fail: (reason) => setError(sentence(reason)),
    }),
    [],
  );

  useEffect(() => {
    const controller = new AbortController();
    mounted.current = controller;
    void follow(source, viewer, controller.signal);
    return () => controller.abort();
  }, [source, viewer]);

  const refresh = useCallback(() => ask(source, viewer, mounted.current.signal), [source, viewer]);
  return { status, error, refresh };
}

export interface LiveRegistration {
  /** Undefined until it is known; null where none is for the directory. */
  readonly registration: RegistrationStatus | null | undefined;
  readonly error: string | null;
  /** What an action has answered, until something newer is told. */
  show(registration: RegistrationStatus | null): void;
}

/**
 * The registration of a directory: the one with the workspace's own id if there is one, else whichever the service names.
 * Several may be for one directory, and the others belong to somebody else.
 */
export function useRegistration(workspaceId: string, directory: string | undefined, live: Live): LiveRegistration {
  const workspaceStatus = useRpc(workspaceStatusRpc);
  const [registration, show] = useState<RegistrationStatus | null | undefined>(undefined);
  const [error, setError] = useState<string | null>(null);
  const { status } = live;

  useEffect(() => {
    if (directory === undefined || status === null) return undefined;
    const own = status.registrations.find((each) => each.id === workspaceId);
    if (own !== undefined) {
      show(own);
      setError(null);
      return undefined;
    }
    let isCurrent = true;
    workspaceStatus({ path: directory }).then(
      (found) => {
        if (!isCurrent) return;
        show(found);
        setError(null);
      },
      (reason: unknown) => {
        if (isCurrent) setError(sentence(reason));
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [workspaceId, directory, status, workspaceStatus]);

  return { registration, error: live.error ?? error, show };
}

export interface Action {
  /** Run it; whoever offers this must not do so while it runs. */
  run(): Promise<void>;
  readonly isRunning: boolean;
}

/** Something that a person starts and that may fail; `fail` is told the sentence, and null when it begins anew. */
export function useAction(work: () => Promise<void>, fail: (sentence: string | null) => void): Action {
  const [isRunning, setRunning] = useState(false);
  const run = async (): Promise<void> => {
    setRunning(true);
    fail(null);
    try {
      await work();
    } catch (reason) {
      fail(sentence(reason));
    } finally {
      setRunning(false);
    }
  };
  return { run, isRunning };
}
