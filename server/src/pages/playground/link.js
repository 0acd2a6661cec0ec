// The whole request in the part of an address after `#`: a link holds everything, and a reload loses nothing.
//
//   #1.<base64url of the deflated JSON of what differs from the defaults>

import {DEFAULTS} from "./examples.js";

const VERSION = "1.";

const through = (bytes, stream) => new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer();

/** The state as the hash of an address. */
export async function toHash(state) {
  const differs = Object.entries(state).filter(([name, value]) => value !== DEFAULTS[name]);
  const text = new TextEncoder().encode(JSON.stringify(Object.fromEntries(differs)));
  const bytes = new Uint8Array(await through(text, new CompressionStream("deflate-raw")));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return "#" + VERSION + btoa(binary).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** The state of a hash, each field of the type of its default; `null` where it is none of ours. */
export async function fromHash(hash) {
  const text = hash.replace(/^#/, "");
  if (!text.startsWith(VERSION)) return null;
  try {
    const binary = atob(text.slice(VERSION.length).replace(/-/g, "+").replace(/_/g, "/"));
    const bytes = Uint8Array.from(binary, letter => letter.charCodeAt(0));
    const json = new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
    const held = JSON.parse(json);
    const fits = ([name, value]) => name in DEFAULTS && typeof value === typeof DEFAULTS[name];
    return {...DEFAULTS, ...Object.fromEntries(Object.entries(held).filter(fits))};
  } catch {
    return null;
  }
}
