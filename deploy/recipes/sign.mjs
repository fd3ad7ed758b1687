#!/usr/bin/env node
// Signs URLs for a Nuthatch node, using only Node's built-in modules.
//
//     NUTHATCH_SIGNING_KEY=<secret> sign.mjs image <node> <URL> [<expires>]
//     NUTHATCH_SIGNING_KEY=<secret> sign.mjs site <name of the site> <URL> [<expires>]
//
// The secret is the part after the colon of a line in the node's --signing-key-file; <expires> is
// the time until which the URL is valid, in seconds since 1970 (not milliseconds).

import { createHmac } from "node:crypto";
import { realpathSync } from "node:fs";
import { argv, env, exit } from "node:process";
import { fileURLToPath } from "node:url";

/** The address at which `node` (http://HOST:PORT) serves the image at `url`. */
export function signImage(key, node, url, expires) {
  const target = normalised(url);
  const asked = `${node.replace(/\/+$/, "")}/v1/image?url=${encodeURIComponent(target)}`;
  return `${asked}&${parameters(key, target, expires)}`;
}

/** A URL of the site `name` of the node's settings; path and query are signed unchanged. */
export function signSite(key, name, url, expires) {
  if (!/^[!-"$-~]+$/.test(url)) throw new Error(`not percent-encoded, or with a fragment: ${url}`);
  const [, authority, rest] = url.match(/^https?:\/\/([^/?]*)(.*)$/);
  const host = name === "*" ? authority.toLowerCase().replace(/:80$/, "") : name;
  const target = `//${host}${rest.startsWith("/") ? "" : "/"}${rest}`;
  return url + (url.includes("?") ? "&" : "?") + parameters(key, target, expires);
}

function parameters(key, target, expires) {
  const until = expires === undefined ? "" : String(expires);
  const text = `nuthatch-signed-url-v1\n${target}\n${until}`;
  const signature = createHmac("sha256", key).update(text).digest("base64url");
  return (until ? `expires=${until}&` : "") + `signature=${signature}`;
}

/** The normalised URL under which the node stores the image. */
export function normalised(url) {
  if (/[\x00-\x1f\x7f]/.test(url)) throw new Error("the URL has a control character");
  const parts = url.match(/^(https?):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?$/is);
  if (!parts) throw new Error(`not an absolute http or https URL: ${url}`);
  const scheme = parts[1].toLowerCase();
  return `${scheme}://${authorityOf(scheme, parts[2])}${pathOf(parts[3])}${escaped(parts[4] ?? "")}`;
}

function authorityOf(scheme, authority) {
  const parts = authority
    .toLowerCase()
    .match(/^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]*))?$/);
  if (!parts) throw new Error(`no host, or not in ASCII: ${authority}`);
  let host = parts[1].replace(/\.$/, "");
  if (host.startsWith("[")) host = new URL(`http://${host}/`).hostname;
  const port = Number(parts[2] || 0);
  return port === 0 || port === { http: 80, https: 443 }[scheme] ? host : `${host}:${port}`;
}

/** Decodes unreserved characters, and percent-encodes characters that a URL cannot have. */
function escaped(text) {
  const bytes = Buffer.from(text, "utf8").toString("latin1");
  const illegal = /%([0-9A-Fa-f]{2})|[^A-Za-z0-9._~!$&'()*+,;=:@/?-]/g;
  return bytes.replace(illegal, (found, digits) => {
    if (found === "%") throw new Error("% must be followed by two hexadecimal digits");
    const code = digits ? parseInt(digits, 16) : found.charCodeAt(0);
    const letter = String.fromCharCode(code);
    if (digits && /[A-Za-z0-9._~-]/.test(letter)) return letter;
    return `%${code.toString(16).toUpperCase().padStart(2, "0")}`;
  });
}

/** Normalises the escapes and removes dot segments (RFC 3986 section 5.2.4). */
function pathOf(path) {
  const segments = path === "" ? [""] : escaped(path).split("/").slice(1);
  const kept = [];
  for (const segment of segments) {
    if (segment === "..") kept.pop();
    else if (segment !== ".") kept.push(segment);
  }
  if ([".", ".."].includes(segments.at(-1))) kept.push("");
  return `/${kept.join("/")}`;
}

if (argv[1] && realpathSync(argv[1]) === fileURLToPath(import.meta.url)) {
  const [kind, ...rest] = argv.slice(2);
  const sign = { image: signImage, site: signSite }[kind];
  if (!sign || rest.length < 2 || rest.length > 3) {
    console.error("usage: sign.mjs image NODE URL [EXPIRES] | site NAME URL [EXPIRES]");
    exit(2);
  }
  console.log(sign(env.NUTHATCH_SIGNING_KEY, ...rest));
}
