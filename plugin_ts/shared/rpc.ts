/** The remote procedures of the plugin: what the app may ask its server side. The service's own have the same names. */

import { defineRpc } from "@getpaseo/plugin";
import { z } from "zod";
import { operationStatus, receipt, registrationId, registrationStatus, serviceStatus } from "./status";

const path = z.string().min(1);

export const statusRpc = defineRpc({
  name: "semantic-index.status",
  input: z.strictObject({}),
  output: serviceStatus,
});

/**
 * Answers as soon as something has changed after `since`, and after some twenty seconds in any case. Without `since`, or with
 * a revision of an earlier life of the plugin, it answers at once.
 */
export const watchRpc = defineRpc({
  name: "semantic-index.watch",
  input: z.strictObject({ since: z.string().optional() }),
  output: z.object({ revision: z.string(), status: serviceStatus }),
});

/** Null where no registration is for the path. */
export const workspaceStatusRpc = defineRpc({
  name: "semantic-index.workspace-status",
  input: z.strictObject({ path }),
  output: registrationStatus.nullable(),
});

export const registerRpc = defineRpc({
  name: "semantic-index.register",
  input: z.strictObject({ id: registrationId, path, baselinePath: path.optional() }),
  output: registrationStatus,
});

export const releaseRpc = defineRpc({
  name: "semantic-index.release",
  input: z.strictObject({ id: registrationId, purge: z.boolean().optional() }),
  output: receipt,
});

export const reindexRpc = defineRpc({
  name: "semantic-index.reindex",
  input: z.strictObject({ id: registrationId }),
  output: operationStatus,
});
