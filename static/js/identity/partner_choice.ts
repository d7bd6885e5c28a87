/** The choice of a reviewer among the partners. */

import type { User } from "../lib/api.ts"
import { el } from "../lib/dom.ts"
import { t, when } from "../lib/i18n.ts"
import type { Partner } from "../lib/partners_api.ts"

/**
 * @param chosen the id of the one to select
 * @param go the button that takes the selected one
 */
export function partnerChoice(partners: readonly Partner[], chosen: string, go: (user: () => User) => HTMLElement) {
  const title = el("h3", { text: t("reviewer.partner") })
  if (partners.length === 0) {
    const start = el("a", { class: "button", href: "/", text: t("reviewer.partner.start") })
    start.dataset.key = "partner-start"
    return el("section", {}, title, el("p", { class: "quiet", text: t("reviewer.partner.none") }), el("div", { class: "actions" }, start))
  }
  const select = el("select", { "aria-label": t("reviewer.partner"), "aria-describedby": "partner-hint" })
  select.dataset.key = "partner"
  // Two partners may have one name.
  select.append(...partners.map(({ user, since }) => el("option", { value: user.id, text: `${user.name} (${t("partners.since", { when: when(since) })})` })))
  if (partners.some(({ user }) => user.id === chosen)) select.value = chosen
  const selected = () => ((partners.find(({ user }) => user.id === select.value) ?? partners[0]) as Partner).user
  return el(
    "section",
    {},
    title,
    el("div", { class: "identity-value" }, select, go(selected)),
    el("p", { id: "partner-hint", class: "quiet", text: t("reviewer.partner.hint") }),
  )
}
