/**
 * What the daemon's environment says of the service: which program, with which arguments, and where a running one is found.
 *
 * Nothing is looked for beside the plugin: Paseo evaluates the plugin's text without telling where it lies.
 */

import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import path from "node:path";

export interface Settings {
  /** Name or path of the program. */
  readonly program: string;
  /** Arguments that start it; null if nothing says what to index, so that only a running service can be used. */
  readonly arguments: readonly string[] | null;
  /** The directory in which a running service says where it listens. */
  readonly stateDirectory: string;
  /** Whether the service makes tokens for itself if the environment names none. */
  readonly makesTokens: boolean;
}

export const NOTHING_TO_INDEX =
  "SEMANTIC_INDEX_CONFIG_FILE is required, or SEMANTIC_INDEX_ROOTS: set one of them in the environment of the Paseo daemon.";

/** Rejects with one sentence if the environment, or the file that it names, cannot be used. */
export async function loadSettings(environment: NodeJS.ProcessEnv): Promise<Settings> {
  const program = variable(environment, "SEMANTIC_INDEX_PROGRAM") || "semindex";
  const serve = ["serve", "--exit-on-stdin-eof", "--log-format", "text"];
  const file = variable(environment, "SEMANTIC_INDEX_CONFIG_FILE");
  if (file !== "") {
    const config = path.resolve(file);
    return {
      program,
      arguments: [...serve, "--config", config],
      stateDirectory: await configuredStateDirectory(config),
      makesTokens: false,
    };
  }
  const roots = variable(environment, "SEMANTIC_INDEX_ROOTS").split(path.delimiter).filter(Boolean);
  return {
    program,
    arguments: roots.length > 0 ? [...serve, ...roots.flatMap((root) => ["--root", path.resolve(root)])] : null,
    stateDirectory: path.join(stateHome(environment), "semindex"),
    makesTokens: true,
  };
}

/** A variable, trimmed; empty if it is absent. */
export function variable(environment: NodeJS.ProcessEnv, name: string): string {
  return environment[name]?.trim() ?? "";
}

/** Only what the plugin needs itself is read here; the service checks all of the file, and says what is wrong with it. */
async function configuredStateDirectory(file: string): Promise<string> {
  let config: unknown;
  try {
    config = JSON.parse(await readFile(file, "utf8"));
  } catch (error) {
    const why =
      error instanceof SyntaxError ? "is not JSON" : `cannot be read (${String((error as { code?: string }).code)})`;
    throw new Error(`SEMANTIC_INDEX_CONFIG_FILE names ${file}, which ${why}.`);
  }
  const directory: unknown = Object(config).stateDirectory;
  if (typeof directory !== "string" || !path.isAbsolute(directory)) {
    throw new Error(`${file}: stateDirectory must be an absolute path.`);
  }
  return directory;
}

function stateHome(environment: NodeJS.ProcessEnv): string {
  const home = environment.XDG_STATE_HOME ?? "";
  // A relative one is invalid, and to be ignored, by the base directory specification.
  return path.isAbsolute(home) ? home : path.join(environment.HOME || homedir(), ".local", "state");
}
