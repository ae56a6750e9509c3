/** Finding a service that already runs, and the token that opens it: files in its state directory, and the environment. */

import { readFile } from "node:fs/promises";
import path from "node:path";
import { type Settings, variable } from "./settings";

const CONTROL_TOKEN = "SEMANTIC_INDEX_CONTROL_TOKEN";

/**
 * Where the service listens that holds the state directory; null if nobody does, or if it is about to end. What is found
 * may be out of date: the holder may have died, and its process id may be somebody else's by now.
 */
export async function findRunning(settings: Settings): Promise<string | null> {
  const holder = await readObject(path.join(settings.stateDirectory, "cell.lock"));
  const { pid, phase, url } = holder ?? {};
  if (typeof pid !== "number" || typeof url !== "string" || phase === "stopping") return null;
  return isAlive(pid) ? url : null;
}

/** The token that opens the plugin's door of the service. Rejects with one sentence if there is none. */
export async function controlToken(settings: Settings, environment: NodeJS.ProcessEnv): Promise<string> {
  const value = variable(environment, CONTROL_TOKEN);
  if (value !== "") return value;
  const file = variable(environment, `${CONTROL_TOKEN}_FILE`);
  if (file !== "") return readToken(file, `${CONTROL_TOKEN}_FILE`);
  if (!settings.makesTokens) throw new Error(`${CONTROL_TOKEN} or ${CONTROL_TOKEN}_FILE is required.`);
  const announced = path.join(settings.stateDirectory, "cell.json");
  const named: unknown = (await readObject(announced))?.controlTokenFile;
  if (typeof named !== "string")
    throw new Error(`The service has not said in ${announced} which file holds its token.`);
  return readToken(named, announced);
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

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as { code?: string }).code === "EPERM"; // a process of another user
  }
}
