/**
 * Following the status: a request that is held until something changes, and the next one at once.
 *
 * Where such requests fail the status is asked for at intervals, and now and then it is tried again.
 */

import type { ServiceStatus } from "../shared/status";

/** Milliseconds between two questions while nobody can be waited with. */
export const INTERVAL = 2_000;
/** Questions before the next try to wait. */
const QUESTIONS = 15;

export interface Source {
  watch(since: string | undefined): Promise<{ readonly revision: string; readonly status: ServiceStatus }>;
  ask(): Promise<ServiceStatus>;
}

export interface Viewer {
  show(status: ServiceStatus): void;
  fail(error: unknown): void;
}

/** Until the signal is aborted; after that the viewer hears nothing more. */
export async function follow(source: Source, viewer: Viewer, signal: AbortSignal): Promise<void> {
  let since: string | undefined;
  while (!signal.aborted) {
    try {
      const seen = await source.watch(since);
      if (signal.aborted) return;
      since = seen.revision;
      viewer.show(seen.status);
    } catch {
      since = undefined;
      for (let question = 0; question < QUESTIONS && !signal.aborted; question++) {
        await ask(source, viewer, signal);
        await pause(INTERVAL, signal);
      }
    }
  }
}

export async function ask(source: Source, viewer: Viewer, signal: AbortSignal): Promise<void> {
  try {
    const status = await source.ask();
    if (!signal.aborted) viewer.show(status);
  } catch (error) {
    if (!signal.aborted) viewer.fail(error);
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });
}
