/**
 * The only import of third-party code. The bundle of a page contains the packages themselves.
 *
 * An import map would be inline in the page, which the content security policy forbids.
 */

export * from "../../vendor/editor.js"
