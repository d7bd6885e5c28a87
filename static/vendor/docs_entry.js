/**
 * The page at `/docs`: esbuild bundles this file with Swagger UI into `docs.js` and `docs.css`.
 *
 * The page requests no validator of another host.
 */

import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js"
import "swagger-ui-dist/swagger-ui.css"

SwaggerUI({ dom_id: "#docs", url: "/openapi.json", deepLinking: true, validatorUrl: null })
