import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The output is committed and embedded in the binary, so its names carry the hash of their content and nothing
// in it depends on the machine that built it.
export default defineConfig({
  // Absolute, because the page of the API document is served from another folder.
  base: "/",
  plugins: [react()],
  resolve: {
    // The form library names this validator in a helper for tests; ours has the same shape and needs no `eval`.
    alias: { "@rjsf/validator-ajv8": new URL("./src/parts/validator.ts", import.meta.url).pathname },
  },
  build: {
    outDir: "../crates/haft-server/console",
    emptyOutDir: true,
    assetsDir: "assets",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    rollupOptions: { input: ["index.html", "docs.html"] },
    target: "es2022",
    // The page of the API document is one large library.
    chunkSizeWarningLimit: 2_000,
  },
  server: {
    proxy: { "/api": "http://127.0.0.1:7300", "/readyz": "http://127.0.0.1:7300" },
  },
  test: { include: ["src/**/*.test.{ts,tsx}"] },
});
