/** The daemon's side of a plugin: it forks, invokes, keeps the log, and stops with the daemon's patience. */

import { type ChildProcess, fork } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { createInterface, type Interface } from "node:readline";
import { built } from "./built";

export const PLUGIN = path.join(import.meta.dirname, "..", "..");
/** The daemon waits this long for a plugin to clean up, then sends SIGTERM, and after as long again SIGKILL. */
const PATIENCE = 2_000;

type Answer =
  | { type: "ready"; methods: string[] }
  | { type: "fatal"; error: string }
  | { type: "result"; requestId: string; output: unknown }
  | { type: "error"; requestId: string; error: string };

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface Pending {
  resolve(output: unknown): void;
  reject(error: Error): void;
}

export class PluginHost {
  readonly log: string[] = [];
  methods: readonly string[] = [];
  /** When its process is gone and its output is closed: a process that inherited the output would keep the daemon waiting. */
  readonly exited: Promise<Exit>;
  readonly #pending = new Map<string, Pending>();
  #requests = 0;

  static async start(environment: NodeJS.ProcessEnv): Promise<PluginHost> {
    const bundle = readFileSync(built("server.js"), "utf8");
    const child = fork(built("worker.mjs"), [path.join(PLUGIN, "package.json")], {
      env: environment,
      cwd: "/", // the daemon's directory, whatever that is
      execArgv: [],
      serialization: "advanced",
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    const host = new PluginHost(child);
    host.methods = await new Promise<string[]>((resolve, reject) => {
      child.once("message", (answer: Answer) => {
        if (answer.type === "ready") resolve(answer.methods);
        else reject(new Error(JSON.stringify(answer)));
      });
      child.send({ type: "initialize", pluginId: "paseo-semantic-index", bundle });
    });
    return host;
  }

  private constructor(readonly child: ChildProcess) {
    const outputs = [child.stdout, child.stderr].flatMap((stream) =>
      stream === null ? [] : [createInterface(stream)],
    );
    for (const lines of outputs) lines.on("line", (line) => this.log.push(line));
    child.on("message", (answer: Answer) => {
      if (answer.type !== "result" && answer.type !== "error") return;
      const pending = this.#pending.get(answer.requestId);
      this.#pending.delete(answer.requestId);
      if (answer.type === "result") pending?.resolve(answer.output);
      else pending?.reject(new Error(answer.error));
    });
    this.exited = this.#exited(outputs);
  }

  /** Not by the "close" event: after a disconnect of the parent's there is none. */
  async #exited(outputs: Interface[]): Promise<Exit> {
    const closed = outputs.map((lines) => new Promise((resolve) => lines.once("close", resolve)));
    const exit = await new Promise<Exit>((resolve) =>
      this.child.once("exit", (code, signal) => resolve({ code, signal })),
    );
    await Promise.all(closed);
    for (const pending of this.#pending.values()) pending.reject(new Error("Plugin process exited"));
    return exit;
  }

  invoke(method: string, input: unknown): Promise<unknown> {
    if (!this.child.connected) return Promise.reject(new Error("Plugin is not running"));
    const requestId = String(++this.#requests);
    return new Promise((resolve, reject) => {
      this.#pending.set(requestId, { resolve, reject });
      this.child.send({ type: "invoke", requestId, method, input });
    });
  }

  async stop(): Promise<Exit> {
    if (this.child.connected) this.child.send({ type: "shutdown" });
    const term = setTimeout(() => this.child.kill("SIGTERM"), PATIENCE);
    const kill = setTimeout(() => this.child.kill("SIGKILL"), 2 * PATIENCE);
    const exit = await this.exited;
    clearTimeout(term);
    clearTimeout(kill);
    return exit;
  }
}
