/**
 * A double of the program `semindex`, as far as a plugin sees it: arguments, lock file, discovery file, greeting, life line.
 *
 * It behaves as `double.json` in its state directory says, and does what a test asks for over the plugin's own door.
 */

import {
  appendFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import path from "node:path";
import { ServiceDouble } from "./service";

export interface Behaviour {
  /** End with this code and sentence instead of starting. */
  refuse?: { code: number; sentence: string };
  /** Never greet. */
  mute?: boolean;
  /** End with this sentence when somebody asks for the status. */
  fragile?: string;
  /** Do not end with standard input. */
  deaf?: boolean;
  /** Nor by SIGTERM. */
  stubborn?: boolean;
}

const argument = (name: string): string | undefined => process.argv[process.argv.indexOf(name) + 1 || Infinity];
const config = argument("--config");
const state =
  config === undefined
    ? path.join(process.env.XDG_STATE_HOME ?? "", "semindex")
    : (JSON.parse(readFileSync(config, "utf8")) as { stateDirectory: string }).stateDirectory;
mkdirSync(state, { recursive: true });
const file = (name: string): string => path.join(state, name);
const behaviour = (
  existsSync(file("double.json")) ? JSON.parse(readFileSync(file("double.json"), "utf8")) : {}
) as Behaviour;

appendFileSync(file("starts"), `${process.pid} ${process.argv.slice(2).join(" ")}\n`);
refuseToStart();
await serve();

function refuseToStart(): void {
  if (behaviour.refuse !== undefined) end(behaviour.refuse.code, behaviour.refuse.sentence);
  if (!existsSync(file("cell.lock"))) return;
  const { pid } = JSON.parse(readFileSync(file("cell.lock"), "utf8")) as { pid: number };
  try {
    process.kill(pid, 0);
  } catch {
    return;
  }
  end(2, `${state} is in use by process ${pid}: stop it, or choose another state directory.`);
}

function end(code: number, sentence: string): never {
  process.stderr.write(`semindex: ${sentence}\n`);
  process.exit(code);
}

async function serve(): Promise<void> {
  const token = process.env.SEMANTIC_INDEX_CONTROL_TOKEN ?? "made-by-the-double-itself";
  const service = new ServiceDouble(token);
  const { fragile } = behaviour;
  if (fragile !== undefined) service.methods["semantic-index.status"] = () => end(1, fragile);
  service.methods["double.change"] = (fields) => service.change(fields);
  service.methods["double.calls"] = () => service.calls;
  service.methods["double.print"] = ({ line }) => void process.stderr.write(`${String(line)}\n`);
  service.methods["double.silence"] = ({ method }) => void service.silent.add(String(method));
  service.methods["double.die"] = ({ code }) => process.exit(Number(code));
  const socket = argument("--socket");
  const url = await service.listen(socket);
  const lock = openSync(file("cell.lock"), "w"); // open for as long as this process lives, as the real one's is
  const announce = (phase: string): number =>
    writeSync(lock, JSON.stringify({ pid: process.pid, phase, url }).padEnd(4096), 0);
  announce("ready");
  if (config === undefined) {
    writeFileSync(file("control.token"), `${token}\n`, { mode: 0o600 });
    writeFileSync(
      file("cell.json"),
      JSON.stringify({ url, pid: process.pid, controlTokenFile: file("control.token") }),
    );
  }
  // In order, as the service ends: nobody finds it any more, connections are closed with 1001, and then it is gone.
  const endInOrder = (): void => {
    rmSync(file("cell.json"), { force: true });
    announce("stopping");
    appendFileSync(file("starts"), `${process.pid} ended in order\n`);
    service.hangUp(1001);
    process.exit(0);
  };
  process.stdin.on("end", () => behaviour.deaf || endInOrder()).resume();
  process.on("SIGTERM", () => behaviour.stubborn || endInOrder());
  if (behaviour.mute) return;
  process.stdout.write(`semindex 0.1.0 listens on ${url}\ncontrol token: ${file("control.token")}\n`);
  process.stderr.write(`12:00:00 INFO    ready on ${url}\n`);
}
