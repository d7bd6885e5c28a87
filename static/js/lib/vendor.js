// @ts-check
/**
 * The only import of third-party code. Written by `static/vendor/build.mjs`; do not edit.
 *
 * An import map would be inline in the page, which the content security policy forbids.
 */

export * from "../../vendor/editor-c02aa36fe696.js"
