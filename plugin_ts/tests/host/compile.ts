/**
 * Compiles a plugin directory as the daemon does (0.8 and later): one bundle for each side, and strict borders between them,
 * which types do not cross either.
 */

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { build, type OnLoadResult, type Plugin } from "esbuild";

export type Side = "client" | "server";

const SDK = [
  "@getpaseo/plugin",
  "@getpaseo/plugin/server",
  "@getpaseo/plugin/client",
  "@getpaseo/plugin/client/react-native",
];
const CLIENT_HOST = ["@tanstack/react-query", "react", "react/jsx-runtime", "react-native"];
const FOREIGN: Record<Side, RegExp> = {
  client: /^(?:node:.*|fs|path|os|net|http|https|crypto|child_process|worker_threads|@getpaseo\/plugin\/server.*)$/,
  server: /^(?:react|react\/.*|react-native|@tanstack\/react-query|@getpaseo\/plugin\/client.*)$/,
};

export interface Compiled {
  readonly id: string;
  readonly client: string;
  readonly server: string;
}

export async function compilePlugin(directory: string): Promise<Compiled> {
  const manifest = JSON.parse(readFileSync(path.join(directory, "paseo-plugin.json"), "utf8")) as {
    id: string;
    requirements: { paseo: string };
  };
  if (!/^[a-z][a-z0-9-]*$/.test(manifest.id)) throw new Error(`Invalid plugin id: ${manifest.id}`);
  if (typeof manifest.requirements.paseo !== "string") throw new Error("The manifest must name requirements.paseo");
  const [client, server] = await Promise.all([bundle(directory, "client"), bundle(directory, "server")]);
  return { id: manifest.id, client, server };
}

async function bundle(directory: string, side: Side): Promise<string> {
  const entry = [`index.${side}.ts`, `index.${side}.tsx`].map((name) => path.join(directory, name)).find(existsSync);
  if (entry === undefined) throw new Error(`The ${side} entry is missing`);
  const result = await build({
    entryPoints: [entry],
    bundle: true,
    format: "cjs",
    platform: side === "server" ? "node" : "neutral",
    target: side === "server" ? "node20" : "es2020",
    external: [...SDK, "zod", ...(side === "client" ? CLIENT_HOST : [])],
    plugins: [borders(directory, side)],
    logLevel: "silent",
    treeShaking: true,
    write: false,
  });
  if (result.warnings.length > 0) throw new Error(JSON.stringify(result.warnings));
  const code = result.outputFiles[0]?.text ?? "";
  return `(function(require) {\nconst module = { exports: {} };\nconst exports = module.exports;\n${code}\nreturn module.exports;\n})`;
}

function borders(directory: string, side: Side): Plugin {
  const refuse = (text: string): OnLoadResult => ({ errors: [{ text }] });
  return {
    name: "borders",
    setup(context) {
      context.onLoad({ filter: /\.[cm]?[jt]sx?$/ }, ({ path: file }) => {
        const relative = path.relative(directory, file).split(path.sep).join("/");
        if (relative.startsWith("..") || relative.startsWith("node_modules/")) return undefined;
        const [top] = relative.split("/");
        if (top === (side === "client" ? "server" : "client"))
          return refuse(`${relative} cannot be in the ${side} bundle`);
        const foreign = imports(file).find((name) =>
          top === "shared" ? FOREIGN.client.test(name) || FOREIGN.server.test(name) : FOREIGN[side].test(name),
        );
        if (foreign !== undefined) return refuse(`${foreign} cannot be imported into ${relative}`);
        const isEntry = /^index\.(?:client|server)\.tsx?$/.test(relative);
        if (!isEntry && !["client", "server", "shared"].includes(top ?? "")) {
          return refuse(`Plugin modules belong in client/, server/, or shared/: ${relative}`);
        }
        return undefined;
      });
      context.onResolve({ filter: FOREIGN[side] }, ({ path: name, importer }) => {
        const ours = !importer.includes("node_modules");
        return ours || side === "client"
          ? refuse(`${name} cannot be imported into the plugin ${side} bundle`)
          : undefined;
      });
    },
  };
}

/** What a module names in its imports, types included: the compiler has forgotten those. */
function imports(file: string): string[] {
  return Array.from(readFileSync(file, "utf8").matchAll(/\bfrom "([^"]+)"/g), ([, name]) => name ?? "");
}
