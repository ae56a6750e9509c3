/** Statuses as the service tells them. */

import type { RegistrationStatus, ServiceStatus } from "../../shared/status";

const TIME = "2026-11-30T12:00:00.000Z";

export function registration(fields: Partial<RegistrationStatus> & { id: string }): RegistrationStatus {
  return {
    kind: fields.baselinePath === undefined ? "primary" : "worktree",
    path: `/code/${fields.id}`,
    references: 1,
    createdAt: TIME,
    state: "Indexed",
    message: "Index up-to-date.",
    processedItems: 4,
    totalItems: 4,
    percent: 100,
    updatedAt: TIME,
    ...fields,
  };
}

export function service(fields: Partial<ServiceStatus> = {}): ServiceStatus {
  return {
    phase: "ready",
    version: "0.1.0",
    startedAt: TIME,
    updatedAt: TIME,
    message: "Semantic index service is ready.",
    revision: "double.0",
    registrations: [],
    activeManagers: fields.registrations?.length ?? 0,
    mcpSessions: 0,
    ...fields,
  };
}
