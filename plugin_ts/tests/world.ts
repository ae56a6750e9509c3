/** What a test of the whole server side needs: directories, the program double, the plugin in its host, and waiting for what it tells. */

import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Connection } from "../server/connection";
import { TIMING } from "../server/time";
import type { ServiceStatus } from "../shared/status";
import type { Behaviour } from "./doubles/semindex";
import { built } from "./host/built";
import { PluginHost } from "./host/plugin-host";

export const TOKEN = "control-token-of-the-test";
const BOUND = 10_000;

export class World {
  readonly directory = mkdtempSync(path.join(tmpdir(), "semindex-plugin-"));
  readonly program = path.join(this.directory, "semindex");
  readonly state = path.join(this.directory, "state", "semindex");
  readonly lock = path.join(this.state, "cell.lock");
  readonly #hosts: PluginHost[] = [];
  readonly #open: number[] = [];
  readonly #end = new AbortController();

  constructor() {
    mkdirSync(this.state, { recursive: true });
    writeFileSync(this.program, `#!/bin/sh\nexec "${process.execPath}" "${built("semindex.mjs")}" "$@"\n`);
    chmodSync(this.program, 0o755);
  }

  /** The environment of a daemon in which the service has a configuration file. */
  configured(extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
    const file = path.join(this.directory, "config.json");
    writeFileSync(file, JSON.stringify({ stateDirectory: this.state }));
    return this.environment({ SEMANTIC_INDEX_CONFIG_FILE: file, SEMANTIC_INDEX_CONTROL_TOKEN: TOKEN, ...extra });
  }

  /** The environment of a daemon that names nothing but what is given. */
  environment(extra: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
    return {
      PATH: process.env.PATH,
      HOME: this.directory,
      XDG_STATE_HOME: path.join(this.directory, "state"),
      SEMANTIC_INDEX_PROGRAM: this.program,
      ...extra,
    };
  }

  behave(behaviour: Behaviour): void {
    writeFileSync(path.join(this.state, "double.json"), JSON.stringify(behaviour));
  }

  /** Hold the state directory in this process, as a service that listens at the address does: its lock stays open. */
  hold(url: string, phase = "ready"): void {
    writeFileSync(this.lock, JSON.stringify({ pid: process.pid, phase, url }));
    this.#open.push(openSync(this.lock, "r+"));
  }

  /** What the program double has written down: its starts, and its ends in order. */
  starts(): string[] {
    const file = path.join(this.state, "starts");
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  }

  /** Process ids of the doubles that were started, in order. */
  pids(): number[] {
    return this.starts()
      .filter((line) => line.includes("serve"))
      .map((line) => Number(line.split(" ")[0]));
  }

  async plugin(environment: NodeJS.ProcessEnv): Promise<Plugin> {
    const host = await PluginHost.start(environment);
    this.#hosts.push(host);
    return new Plugin(host);
  }

  /** Ask the double that holds the state directory for something. */
  async double(method: string, params: object = {}): Promise<unknown> {
    const { url } = JSON.parse(readFileSync(this.lock, "utf8")) as { url: string };
    const connection = await Connection.open(url, TOKEN, TIMING, this.#end.signal, () => undefined);
    try {
      return await bounded(connection.call(method, params, this.#end.signal), method);
    } finally {
      connection.end();
    }
  }

  /** Have the double die at once. */
  async kill(code: number): Promise<void> {
    await this.double("double.die", { code }).catch(() => undefined); // it has no time to answer
  }

  async end(): Promise<void> {
    await Promise.all(this.#hosts.map((host) => host.stop()));
    this.#end.abort();
    for (const descriptor of this.#open) closeSync(descriptor);
    for (const pid of this.pids()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // it is gone, as it should be
      }
    }
    rmSync(this.directory, { recursive: true, force: true });
  }
}

/** The plugin as its clients see it. */
export class Plugin {
  constructor(readonly host: PluginHost) {}

  async status(): Promise<ServiceStatus> {
    return (await this.host.invoke("semantic-index.status", {})) as ServiceStatus;
  }

  /** Follow the status until it is as wanted. */
  async until(isWanted: (status: ServiceStatus) => boolean): Promise<ServiceStatus> {
    const seen: string[] = [];
    const look = async (): Promise<ServiceStatus> => {
      let since: string | undefined;
      for (;;) {
        const input = since === undefined ? {} : { since };
        const told = (await this.host.invoke("semantic-index.watch", input)) as {
          revision: string;
          status: ServiceStatus;
        };
        since = told.revision;
        seen.push(`${told.status.phase}: ${told.status.message}`);
        if (isWanted(told.status)) return told.status;
      }
    };
    return bounded(
      look(),
      () => `never told what was wanted, but: ${seen.join(" | ")}; log: ${this.host.log.join(" | ")}`,
    );
  }

  ready(): Promise<ServiceStatus> {
    return this.until((status) => status.phase === "ready");
  }
}

/** The promise's outcome; an error that says what was awaited if it takes too long. */
export async function bounded<T>(promise: Promise<T>, awaited: string | (() => string)): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(typeof awaited === "string" ? awaited : awaited())), BOUND);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Resolves when a process is gone. */
export async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
}
