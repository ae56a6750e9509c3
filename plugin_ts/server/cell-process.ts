/** One process of the service, started by this plugin: its greeting, its lines, its end. */

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Log } from "./log";
import { settles, type Timing, within } from "./time";

const GREETING = /^semindex \S+ listens on (\S+)$/;
/** Milliseconds for the last lines of a process that has ended: its workers may hold the pipe for longer. */
const LAST_LINES = 200;

export class CellProcess {
  /** Its address, as soon as it takes connections. Rejects if it ends before, or takes too long. */
  readonly listening: Promise<string>;
  /** How it ended, in one sentence. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcessWithoutNullStreams;
  #isAlive = true;
  #lastWords = "";

  constructor(
    program: string,
    args: readonly string[],
    private readonly log: Log,
    private readonly timing: Timing,
  ) {
    // With pipes of its own: a process that inherited ours would keep Paseo waiting for their end after we are gone. Its
    // input is the life line: when this process ends, however that may be, it ends too.
    this.#child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stdin.on("error", () => undefined); // it closed its input; its end is told by "exit"
    const errors = this.#followErrors();
    this.ended = new Promise((resolve) => {
      this.#child.once("error", (error: NodeJS.ErrnoException) => {
        if (this.#child.pid !== undefined) return; // it runs, and could not be sent a signal
        resolve(`${program} cannot be started (${error.code}): set SEMANTIC_INDEX_PROGRAM to the path of semindex.`);
      });
      this.#child.once("exit", async (code, signal) => {
        this.#isAlive = false;
        await settles(LAST_LINES, errors);
        const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
        resolve(this.#lastWords || `The semantic index service ended ${how}.`);
      });
    });
    void this.ended.then(() => {
      this.#isAlive = false;
      for (const stream of [this.#child.stdin, this.#child.stdout, this.#child.stderr]) stream.destroy();
    });
    this.listening = this.#listening();
    this.listening.catch(() => undefined); // whoever asks is told
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** End it: in order by the end of its input, then by SIGTERM, then by SIGKILL. */
  async stop(): Promise<void> {
    const [afterInput, afterTerm, afterKill] = this.timing.graces;
    this.#child.stdin.end();
    if (await settles(afterInput, this.ended)) return;
    this.#child.kill("SIGTERM");
    if (await settles(afterTerm, this.ended)) return;
    this.log.error("the service does not end in time and is killed; its next start repairs what is left over");
    this.#child.kill("SIGKILL");
    await settles(afterKill, this.ended);
  }

  async #listening(): Promise<string> {
    const greeted = new Promise<string>((resolve) => {
      // Everything is read, so that the pipe never fills; only the first line is meant for programs.
      createInterface(this.#child.stdout).on("line", (line) => {
        const address = GREETING.exec(line)?.[1];
        if (address === undefined) return;
        this.log.info(line);
        resolve(address);
      });
    });
    const failed = this.ended.then((how): never => {
      throw new Error(how);
    });
    const tooSlow = `The semantic index service has not started within ${this.timing.start / 1000} seconds.`;
    try {
      return await within(this.timing.start, () => Promise.race([greeted, failed]), tooSlow);
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /** Resolves when everything is read. */
  #followErrors(): Promise<void> {
    const lines = createInterface(this.#child.stderr);
    lines.on("line", (line) => {
      this.log.error(line);
      const sentence = /^semindex: (.+)$/.exec(line)?.[1];
      if (sentence !== undefined) this.#lastWords = sentence;
    });
    return new Promise((resolve) => lines.once("close", resolve));
  }
}
