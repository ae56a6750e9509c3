import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: {
    // The SDK is supplied by Paseo, and by nobody else: modules that are tested by themselves get the double's.
    alias: { "@getpaseo/plugin": fileURLToPath(new URL("tests/host/sdk.ts", import.meta.url)) },
  },
  test: {
    globalSetup: "tests/setup.ts",
    include: ["tests/**/*.test.{ts,tsx}"],
    testTimeout: 20_000,
    hookTimeout: 20_000,
    maxWorkers: 2,
    restoreMocks: true,
  },
});
