// @ts-check
/**
 * The one door to other people's code. Written by `static/vendor/build.mjs`; do not edit.
 *
 * An import map would have to stand inline in the page, which the content security policy forbids.
 */

export * from "../../vendor/editor-9bc75c15b182.js"
