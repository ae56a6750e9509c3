/** The shapes that both sides share. */

import { expect, test } from "vitest";
import { registerRpc, releaseRpc, statusRpc, watchRpc } from "../shared/rpc";
import { serviceStatus } from "../shared/status";
import { registration, service } from "./doubles/statuses";

test("what is asked is strict: unknown fields, nulls and illegal ids are refused", () => {
  expect(statusRpc.input.safeParse({ more: 1 }).success).toBe(false);
  expect(registerRpc.input.safeParse({ id: "a", path: "/a", kind: "primary" }).success).toBe(false);
  expect(registerRpc.input.safeParse({ id: "a", path: "/a", baselinePath: null }).success).toBe(false);
  expect(releaseRpc.input.safeParse({ id: "no spaces" }).success).toBe(false);
  expect(watchRpc.input.safeParse({}).success).toBe(true);
});

test("ids that Paseo makes are legal ids of registrations", () => {
  for (const id of ["wks_0123456789abcdef", "prj_0123456789abcdef:primary"]) {
    expect(registerRpc.input.safeParse({ id, path: "/a" }).success).toBe(true);
  }
});

test("what is answered may have more fields than are known here", () => {
  const status = service({ registrations: [{ ...registration({ id: "a" }), novelty: true } as never] });

  expect(serviceStatus.parse({ ...status, novelty: { deep: 1 } })).toEqual(
    service({ registrations: [registration({ id: "a" })] }),
  );
});

test("times have to be in UTC", () => {
  expect(serviceStatus.safeParse(service({ updatedAt: "2026-11-30T12:00:00+01:00" })).success).toBe(false);
});
