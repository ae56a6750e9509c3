/** Where calls wait for the service: while it starts they wait, if it has failed they are told why. */

import type { Connection } from "./connection";

export class Gate {
  #connection!: Promise<Connection>;
  #settle: ((outcome: Connection | Error) => void) | null = null;
  #isClosed = false;

  constructor() {
    this.expect();
  }

  /** The connection, as soon as there is one. Rejects with the reason why there is none. */
  pass(): Promise<Connection> {
    return this.#connection;
  }

  /** There is no connection, and there soon will be. */
  expect(): void {
    if (this.#settle !== null || this.#isClosed) return; // those who wait already go on waiting
    this.#connection = new Promise((resolve, reject) => {
      this.#settle = (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome));
    });
    this.#connection.catch(() => undefined); // nobody need be waiting
  }

  open(connection: Connection): void {
    this.#decide(connection);
  }

  fail(error: Error): void {
    this.#decide(error);
  }

  /** Refuse everybody, for good. */
  close(error: Error): void {
    this.#decide(error);
    this.#isClosed = true;
  }

  #decide(outcome: Connection | Error): void {
    if (this.#isClosed) return;
    this.expect();
    this.#settle?.(outcome);
    this.#settle = null;
  }
}
