/**
 * Keeps one service within reach: uses one that runs, else starts one; follows its status; begins again after every failure.
 *
 * Paseo does not restart a plugin that died, and the service cannot restart itself: so this never gives up.
 */

import { z } from "zod";
import { serviceStatus } from "../shared/status";
import { type Board, withoutService } from "./board";
import { CellProcess } from "./cell-process";
import { Connection, NobodyListens, shaped } from "./connection";
import { controlToken, findRunning } from "./discovery";
import type { Gate } from "./gate";
import type { Log } from "./log";
import { loadSettings, NOTHING_TO_INDEX } from "./settings";
import { BackOff, pause, settles, type Timing, within } from "./time";

const changed = z.object({ status: serviceStatus });

export class Supervisor {
  readonly #end = new AbortController();
  readonly #backOff: BackOff;
  #cell: CellProcess | null = null;
  #lastFailure = "";

  constructor(
    private readonly environment: NodeJS.ProcessEnv,
    private readonly board: Board,
    private readonly gate: Gate,
    private readonly log: Log,
    private readonly timing: Timing,
  ) {
    this.#backOff = new BackOff(timing.firstPause, timing.longestPause);
  }

  /** Until it is told to end. It never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#end;
    while (!signal.aborted) {
      const failure = await this.#live(signal).catch((error: unknown) => error as Error);
      if (signal.aborted) break;
      this.#show(failure);
      await pause(this.#backOff.next(), signal);
    }
  }

  /** End the connection at once, and a service that was started here within the graces. */
  async end(): Promise<void> {
    this.#end.abort();
    await this.#cell?.stop();
  }

  /** One connection from its opening to its end. Rejects with a sentence if it does not come about; else it says how it ended. */
  async #live(signal: AbortSignal): Promise<Error> {
    const connection = await this.#connect(signal);
    const opened = performance.now();
    try {
      await this.#follow(connection).catch(async (error: Error) => {
        throw new Error((await this.#death()) ?? error.message);
      });
      this.gate.open(connection);
      this.#lastFailure = "";
      const why = await connection.closed;
      if (performance.now() - opened > this.timing.stable) this.#backOff.reset();
      // Calls that come now wait for the next connection, unless that fails.
      this.gate.expect();
      const death = await this.#death();
      return new LostService(
        death === null ? `${why} The plugin connects again.` : `${death} It is being started again.`,
      );
    } finally {
      connection.end();
    }
  }

  async #connect(signal: AbortSignal): Promise<Connection> {
    const settings = await loadSettings(this.environment);
    const open = async (url: string): Promise<Connection> => {
      const token = await controlToken(settings, this.environment, url);
      this.log.keepOut(token);
      const notify = (method: string, params: unknown): void => this.#notified(method, params);
      return Connection.open(url, token, this.timing, signal, notify);
    };

    if (!this.#cell?.isAlive) {
      this.#cell = null;
      const url = await findRunning(settings);
      if (url !== null) {
        try {
          const connection = await open(url);
          this.log.info(`using the service that runs already, on ${url}`);
          return connection;
        } catch (error) {
          if (!(error instanceof NobodyListens)) throw error;
        }
      }
      if (settings.arguments === null) throw new Error(NOTHING_TO_INDEX);
      if (signal.aborted) throw new Error("The plugin is stopping.");
      this.#cell = new CellProcess(settings.program, settings.arguments, this.log, this.timing);
    }
    return open(await this.#cell.listening);
  }

  /** Show the service's status now and from now on. No change is missed: the watch begins at the revision that was shown. */
  async #follow(connection: Connection): Promise<void> {
    const late = `The semantic index service has not told its status within ${this.timing.call / 1000} seconds.`;
    const ask = (method: string, params: object): Promise<unknown> =>
      within(this.timing.call, (signal) => connection.call(method, params, signal), late);
    const status = shaped(serviceStatus, await ask("semantic-index.status", {}));
    this.board.publish(status);
    const since = status.revision === undefined ? {} : { since: status.revision };
    await ask("semantic-index.watch", since);
  }

  #notified(method: string, params: unknown): void {
    if (method !== "semantic-index.changed") return;
    try {
      this.board.publish(shaped(changed, params).status);
    } catch (error) {
      this.log.error((error as Error).message);
    }
  }

  /** How the service that was started here has ended, if it has: its connection may be gone a moment before it is. */
  async #death(): Promise<string | null> {
    if (this.#cell === null) return null;
    await settles(this.timing.graces[0], this.#cell.ended);
    return this.#cell.isAlive ? null : this.#cell.ended;
  }

  #show(failure: Error): void {
    const message = this.log.clean(failure.message);
    if (failure instanceof LostService) {
      this.log.error(`service lost: ${message}`);
      this.board.publish(withoutService("degraded", message));
      return;
    }
    // Told once, not at every try.
    if (message !== this.#lastFailure) this.log.error(`startup failed: ${message}`);
    this.#lastFailure = message;
    this.gate.fail(new Error(message));
    this.board.publish(withoutService("degraded", message));
  }
}

/** A connection that had come about has ended. */
class LostService extends Error {}
