import { defineConfig } from "vitest/config";

// The pages in a real browser against a real service. One file at a time: each starts its own service.
export default defineConfig({
  test: {
    include: ["e2e/**/*.test.ts"],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // After a failure the pages are in an unknown state.
    bail: 0,
  },
});
