/** Finding a service that already runs, and the token that opens it: files in its state directory, and the environment. */

import { readdir, readFile, readlink, realpath } from "node:fs/promises";
import path from "node:path";
import { type Settings, variable } from "./settings";

const CONTROL_TOKEN = "SEMANTIC_INDEX_CONTROL_TOKEN";

/**
 * Where the service listens that holds the state directory; null if nobody does, or if it is about to end.
 *
 * Whoever listens there will be sent the control token. So a lock file that a service has left behind, by dying before
 * it could say that it ends, must not be believed. One risk remains, where the system does not tell which files a
 * process has open (there is no /proc, or it is closed to us): the process id may have passed to another process of
 * this user (of anybody, if this user is root), and the address to a stranger.
 */
export async function findRunning(settings: Settings): Promise<string | null> {
  const lock = path.join(settings.stateDirectory, "cell.lock");
  const { pid, phase, url } = (await readObject(lock)) ?? {};
  if (typeof pid !== "number" || typeof url !== "string" || phase === "stopping") return null;
  return (await mayHold(pid, lock)) ? url : null;
}

/**
 * The token that opens the plugin's door of the service at an address. Rejects with one sentence if there is none: one
 * that a service has made for itself is for the address that it has announced, and for no other.
 */
export async function controlToken(settings: Settings, environment: NodeJS.ProcessEnv, url: string): Promise<string> {
  const value = variable(environment, CONTROL_TOKEN);
  if (value !== "") return value;
  const file = variable(environment, `${CONTROL_TOKEN}_FILE`);
  if (file !== "") return readToken(file, `${CONTROL_TOKEN}_FILE`);
  if (!settings.makesTokens) throw new Error(`${CONTROL_TOKEN} or ${CONTROL_TOKEN}_FILE is required.`);
  const announced = path.join(settings.stateDirectory, "cell.json");
  const { url: address, controlTokenFile } = (await readObject(announced)) ?? {};
  if (typeof controlTokenFile !== "string" || address !== url)
    throw new Error(`The service at ${url} has not said in ${announced} which file holds its token.`);
  return readToken(controlTokenFile, announced);
}

async function readToken(file: string, namedBy: string): Promise<string> {
  let token: string;
  try {
    token = (await readFile(file, "utf8")).trim();
  } catch (error) {
    throw new Error(
      `The token file ${file}, named by ${namedBy}, cannot be read (${String((error as { code?: string }).code)}).`,
    );
  }
  if (token === "") throw new Error(`${namedBy} points to an empty secret file: ${file}.`);
  return token;
}

/** A JSON object; null if the file is missing, unreadable or something else. */
async function readObject(file: string): Promise<Record<string, unknown> | null> {
  try {
    return Object(JSON.parse(await readFile(file, "utf8"))) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** Whether a process may be the one that holds the lock: it is there, is this user's, and has the file open. */
async function mayHold(pid: number, lock: string): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false; // there is none, or (EPERM) it is another user's, whose service would keep its lock file from us
  }
  const descriptors = path.join("/proc", String(pid), "fd");
  const names = await readdir(descriptors).catch(() => null);
  if (names === null) return true; // the system does not tell
  const open = await Promise.all(names.map((name) => readlink(path.join(descriptors, name)).catch(() => null)));
  return open.includes(await realpath(lock));
}
