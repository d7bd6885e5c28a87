// @ts-check
/** Files for imports: archives, Word documents, and their drop on the start page. */

import { crc32, deflateRawSync } from "node:zlib"

/** @typedef {import("./harness.mjs").User} User */
/** @typedef {{ name: string, mimeType: string, buffer: Buffer }} Given a file as Playwright takes it */

export const DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"

/** Drops files on the page, as from the system. @param {User} user @param {Given[]} files @param {"dragover" | "drop"} [last] */
export async function drop({ page }, files, last = "drop") {
  const given = files.map(({ name, mimeType, buffer }) => ({ name, mimeType, bytes: buffer.toString("base64") }))
  // The page takes no file before it knows the user.
  await page.locator("#ways").waitFor()
  await page.evaluate(
    ({ given, last }) => {
      const dataTransfer = new DataTransfer()
      for (const { name, mimeType, bytes } of given) {
        const content = Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0))
        dataTransfer.items.add(new File([content], name, { type: mimeType }))
      }
      for (const type of ["dragenter", "dragover", ...(last === "drop" ? ["drop"] : [])]) {
        document.querySelector(".sheet")?.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }))
      }
    },
    { given, last },
  )
}

/** An archive with one part, compressed. @param {string} name @param {Buffer} content */
export function archive(name, content) {
  const deflated = deflateRawSync(content)
  const shared = Buffer.alloc(26)
  shared.writeUInt32LE(crc32(content), 10)
  for (const [at, number] of /** @type {const} */ ([[0, 20], [4, 8], [8, 0x21], [22, name.length]])) shared.writeUInt16LE(number, at)
  shared.writeUInt32LE(deflated.length, 14)
  shared.writeUInt32LE(content.length, 18)
  const part = Buffer.concat([Buffer.from("PK\x03\x04"), shared, Buffer.from(name), deflated])
  const directory = Buffer.concat([Buffer.from("PK\x01\x02\x14\x00"), shared, Buffer.alloc(14), Buffer.from(name)])
  const end = Buffer.alloc(22)
  end.write("PK\x05\x06")
  for (const at of [8, 10]) end.writeUInt16LE(1, at)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(part.length, 16)
  return Buffer.concat([part, directory, end])
}

/** @param {string} name @param {string | Buffer} content @param {string} [mimeType] @returns {Given} */
export const file = (name, content, mimeType = "") => ({ name, mimeType, buffer: Buffer.from(content) })

/** A Word document. @param {string} body @returns {Given} */
export function wordDocument(body) {
  const xml = `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>${body}</w:body></w:document>`
  return file("letter.docx", archive("word/document.xml", Buffer.from(xml)), DOCX)
}
