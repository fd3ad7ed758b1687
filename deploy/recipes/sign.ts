// Signs URLs for a Nuthatch node with the Web Crypto API, which Node 20, Deno, Bun, edge functions
// and browsers have. A key in a browser is no secret: sign on a server.
//
//     NUTHATCH_SIGNING_KEY=<secret> node sign.js image <node> <URL> [<expires>]
//     NUTHATCH_SIGNING_KEY=<secret> node sign.js site <name of the site> <URL> [<expires>]
//
// The secret is the part after the colon of a line in the node's --signing-key-file; <expires> is
// the time until which the URL is valid, in seconds since 1970 (not milliseconds).

declare const process: { argv: string[]; env: Record<string, string | undefined>; exit(code: number): never };

/** The address at which `node` (http://HOST:PORT) serves the image at `url`. */
export async function signImage(key: string, node: string, url: string, expires?: number): Promise<string> {
  const target = normalised(url);
  const asked = `${node.replace(/\/+$/, "")}/v1/image?url=${encodeURIComponent(target)}`;
  return `${asked}&${await parameters(key, target, expires)}`;
}

/** A URL of the site `name` of the node's settings; path and query are signed unchanged. */
export async function signSite(key: string, name: string, url: string, expires?: number): Promise<string> {
  const parts = /^[!-"$-~]+$/.test(url) ? url.match(/^https?:\/\/([^/?]*)(.*)$/) : null;
  if (!parts) throw new Error(`not percent-encoded, or with a fragment: ${url}`);
  const [, authority, rest] = parts;
  const host = name === "*" ? authority.toLowerCase().replace(/:80$/, "") : name;
  const target = `//${host}${rest.startsWith("/") ? "" : "/"}${rest}`;
  return url + (url.includes("?") ? "&" : "?") + (await parameters(key, target, expires));
}

async function parameters(key: string, target: string, expires?: number): Promise<string> {
  const until = expires === undefined ? "" : String(expires);
  const bytes = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const secret = await crypto.subtle.importKey("raw", bytes.encode(key), algorithm, false, ["sign"]);
  const text = `nuthatch-signed-url-v1\n${target}\n${until}`;
  const code = new Uint8Array(await crypto.subtle.sign("HMAC", secret, bytes.encode(text)));
  const base64 = btoa(String.fromCharCode(...Array.from(code)));
  const signature = base64.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  return (until ? `expires=${until}&` : "") + `signature=${signature}`;
}

/** The normalised URL under which the node stores the image. */
export function normalised(url: string): string {
  const parts = url.match(/^(https?):\/\/([^/?#]*)([^?#]*)(\?[^#]*)?(#[^]*)?$/i);
  if (!parts || /[\x00-\x1f\x7f]/.test(url)) throw new Error(`not an absolute http or https URL: ${url}`);
  const scheme = parts[1].toLowerCase();
  return `${scheme}://${authorityOf(scheme, parts[2])}${pathOf(parts[3])}${escaped(parts[4] ?? "")}`;
}

function authorityOf(scheme: string, authority: string): string {
  const parts = authority.toLowerCase().match(/^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::([0-9]*))?$/);
  if (!parts) throw new Error(`no host, or not in ASCII: ${authority}`);
  let host = parts[1].replace(/\.$/, "");
  if (host.startsWith("[")) host = new URL(`http://${host}/`).hostname;
  const port = Number(parts[2] || 0);
  return port === 0 || port === (scheme === "http" ? 80 : 443) ? host : `${host}:${port}`;
}

/** Decodes unreserved characters, and percent-encodes characters that a URL cannot have. */
function escaped(text: string): string {
  const latin1 = String.fromCharCode(...Array.from(new TextEncoder().encode(text)));
  return latin1.replace(/%([0-9A-Fa-f]{2})|[^A-Za-z0-9._~!$&'()*+,;=:@/?-]/g, (found, digits?: string) => {
    if (found === "%") throw new Error("% must be followed by two hexadecimal digits");
    const code = digits ? parseInt(digits, 16) : found.charCodeAt(0);
    const letter = String.fromCharCode(code);
    if (digits && /[A-Za-z0-9._~-]/.test(letter)) return letter;
    return `%${code.toString(16).toUpperCase().padStart(2, "0")}`;
  });
}

/** Normalises the escapes and removes dot segments (RFC 3986 section 5.2.4). */
function pathOf(path: string): string {
  const segments = path === "" ? [""] : escaped(path).split("/").slice(1);
  const kept: string[] = [];
  for (const segment of segments) {
    if (segment === "..") kept.pop();
    else if (segment !== ".") kept.push(segment);
  }
  if ([".", ".."].includes(segments[segments.length - 1])) kept.push("");
  return `/${kept.join("/")}`;
}

if (typeof process !== "undefined" && /sign\.(js|ts)$/.test(process.argv[1] ?? "")) {
  const [kind, place, url, expires] = process.argv.slice(2);
  const sign = { image: signImage, site: signSite }[kind];
  if (!sign || !url) {
    console.error("usage: sign image NODE URL [EXPIRES] | site NAME URL [EXPIRES]");
    process.exit(2);
  }
  const key = process.env.NUTHATCH_SIGNING_KEY ?? "";
  sign(key, place, url, expires ? Number(expires) : undefined).then(
    (signed) => console.log(signed),
    (error) => {
      console.error(String(error));
      process.exit(1);
    },
  );
}
