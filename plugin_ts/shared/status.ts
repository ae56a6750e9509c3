/**
 * The shapes that the service answers with, as far as this plugin knows them. Both sides use these definitions, and no others.
 *
 * The service may answer more fields than these: they are dropped. What a service of an earlier version need not know is
 * optional.
 */

import { z } from "zod";

const count = z.number().int().nonnegative();
/** ISO 8601 in UTC; offsets are refused. */
const timestamp = z.iso.datetime();

export const registrationId = z.string().regex(/^[A-Za-z0-9._:-]{1,128}$/);

export const operationStatus = z.object({
  id: z.uuid(),
  registrationId,
  kind: z.enum(["reindex", "purge"]),
  state: z.enum(["running", "completed", "failed"]),
  startedAt: timestamp,
  completedAt: timestamp.optional(),
  error: z.string().optional(),
});

export const registrationStatus = z.object({
  id: registrationId,
  kind: z.enum(["primary", "worktree"]),
  path: z.string(),
  baselinePath: z.string().optional(),
  projectId: z.string().optional(),
  workspaceId: z.string().optional(),
  purgeOnRelease: z.boolean().optional(),
  lifecycle: z.enum(["active", "releasing", "stale"]).optional(),
  references: count,
  collection: z.string().optional(),
  createdAt: timestamp,
  state: z.enum(["Standby", "Indexing", "Indexed", "Error"]),
  message: z.string(),
  processedItems: count,
  totalItems: count,
  percent: z.number().min(0).max(100),
  updatedAt: timestamp,
  lastCompletedAt: timestamp.optional(),
  lastUpdateAt: timestamp.optional(),
  filesIndexed: count.optional(),
  filesDiscovered: count.optional(),
  pendingFiles: count.optional(),
  skippedFiles: count.optional(),
  failedFiles: z.object({ count, first: z.array(z.object({ path: z.string(), reason: z.string() })) }).optional(),
  totalChunks: count.optional(),
  embeddedChunks: count.optional(),
  reusedChunks: count.optional(),
  lagMs: z.number().nonnegative().optional(),
  lastError: z.string().optional(),
  operation: operationStatus.optional(),
});

const dependencyStatus = z.object({
  reachable: z.boolean(),
  latencyMs: z.number().nonnegative().optional(),
  lastError: z.string().optional(),
  checkedAt: timestamp.optional(),
});

export const serviceStatus = z.object({
  phase: z.enum(["starting", "ready", "degraded", "stopping", "stopped"]),
  version: z.string(),
  startedAt: timestamp.optional(),
  updatedAt: timestamp,
  message: z.string(),
  /** Of the service; absent while there is none. */
  revision: z.string().optional(),
  registrations: z.array(registrationStatus),
  activeManagers: count,
  mcpSessions: count,
  watchers: count.optional(),
  queueDepth: count.optional(),
  cache: z.object({ hits: count, misses: count, bytes: count }).optional(),
  dependencies: z.object({ embedder: dependencyStatus, store: dependencyStatus }).optional(),
  grammars: z.object({ missing: z.array(z.string()) }).optional(),
  orphans: count.optional(),
});

/** What a release did. */
export const receipt = z.object({
  released: registrationId,
  purged: z.boolean().optional(),
  points: count.optional(),
  bytes: count.optional(),
  drained: count.optional(),
  cancelled: count.optional(),
  durationMs: z.number().nonnegative().optional(),
});

export type ServiceStatus = z.output<typeof serviceStatus>;
export type RegistrationStatus = z.output<typeof registrationStatus>;
