/** Entry of the plugin's server side: Paseo evaluates it in a process of its own. */

import type { PluginServerContext } from "@getpaseo/plugin/server";
import { Backend } from "./server/backend";
import { TIMING } from "./server/time";

export default function contribute(server: PluginServerContext): () => Promise<void> {
  const backend = new Backend(process.env, TIMING);
  backend.contribute(server);
  // A daemon that died without a word leaves this process behind; the service must not stay with it.
  process.once("disconnect", () => void backend.close());
  return () => backend.close();
}
