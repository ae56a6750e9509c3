/** The status as it is now, its revisions, and those who wait for the next one. */

import { randomUUID } from "node:crypto";
import type { ServiceStatus } from "../shared/status";
import { VERSION } from "../shared/version";

export interface Seen {
  readonly revision: string;
  readonly status: ServiceStatus;
}

/** What is told while there is no service to ask. */
export function withoutService(phase: ServiceStatus["phase"], message: string): ServiceStatus {
  return {
    phase,
    version: VERSION,
    updatedAt: new Date().toISOString(),
    message,
    registrations: [],
    activeManagers: 0,
    mcpSessions: 0,
  };
}

export class Board {
  /** Revisions of another life of the plugin are told from ours by this. */
  readonly #life = randomUUID();
  readonly #waiting = new Set<() => void>();
  #changes = 0;
  #isClosed = false;

  constructor(
    private status: ServiceStatus,
    private readonly hold: number,
  ) {}

  get seen(): Seen {
    return { revision: `${this.#life}.${this.#changes}`, status: this.status };
  }

  /** Replace the status, and answer everybody who waits. After the board is closed this does nothing. */
  publish(status: ServiceStatus): void {
    if (this.#isClosed) return;
    this.status = status;
    this.#changes += 1;
    for (const answer of this.#waiting) answer();
  }

  /** What there is to see once it is another revision than `since`; after `hold` milliseconds in any case. */
  async watch(since: string | undefined): Promise<Seen> {
    if (since === this.seen.revision && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        const answer = (): void => {
          clearTimeout(timer);
          this.#waiting.delete(answer);
          resolve();
        };
        const timer = setTimeout(answer, this.hold);
        this.#waiting.add(answer);
      });
    }
    return this.seen;
  }

  /** Show a last status; from now on nobody waits. */
  close(status: ServiceStatus): void {
    this.publish(status);
    this.#isClosed = true;
  }
}
