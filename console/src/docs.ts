// The API document as a page with contents, examples and try-out, at `/api/docs`.

import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle";
import "swagger-ui-dist/swagger-ui.css";
import "./docs.css";
import { CONSOLE_HEADER } from "./api/client";

interface ApiDocument {
  paths: Record<string, Record<string, { tags?: string[] }>>;
}

/** Lists the subjects of the document as links to their operations. */
function showContents({ paths }: ApiDocument): void {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const tags = new Set(operations.flatMap(({ tags = [] }) => tags));
  const list = document.getElementById("contents");
  for (const tag of [...tags].sort()) {
    const link = document.createElement("a");
    link.href = `#/${encodeURIComponent(tag)}`;
    link.textContent = tag;
    link.addEventListener("click", () => {
      const id = `operations-tag-${tag.replaceAll(" ", "_")}`;
      document.getElementById(id)?.scrollIntoView();
    });
    list?.append(link);
  }
}

async function show(): Promise<void> {
  const response = await fetch("/api/openapi.json");
  const spec = (await response.json()) as ApiDocument;
  showContents(spec);
  SwaggerUI({
    spec,
    dom_id: "#docs",
    deepLinking: true,
    filter: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayOperationId: true,
    displayRequestDuration: true,
    tagsSorter: "alpha",
    validatorUrl: null,
    // Try-out works with a key, or with the session of the console, whose changes need this header.
    persistAuthorization: false,
    requestInterceptor: (request: { headers: Record<string, string> }) => {
      request.headers[CONSOLE_HEADER] = "1";
      return request;
    },
  });
}

void show();
