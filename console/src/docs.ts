// The API document as a page with contents, examples and try-out, at `/api/docs`.

import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle";
import "swagger-ui-dist/swagger-ui.css";
import "./docs.css";
import { CONSOLE_HEADER } from "./api/client";

SwaggerUI({
  url: "/api/openapi.json",
  dom_id: "#docs",
  deepLinking: true,
  filter: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayOperationId: true,
  displayRequestDuration: true,
  // Try-out works with a key, or with the session of the console, whose changes need this header.
  persistAuthorization: false,
  requestInterceptor: (request: { url: string; headers: Record<string, string> }) => {
    request.headers[CONSOLE_HEADER] = "1";
    return request;
  },
  validatorUrl: null,
});
