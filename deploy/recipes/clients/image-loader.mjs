// next/image with images from a node: next.config.js has
//
//     images: { loader: "custom", loaderFile: "./image-loader.mjs" }
//
// and components <Image src="https://photos.example.com/cat.jpg" width={600} height={400} alt="" />.
// Two loaders; export the one in use as default. With signing keys at the node, use imgproxy's own
// signature, or sign on the server: a loader runs in the browser.

/** The image as it is, by the node's image API: `width` cannot be honoured, since a node scales nothing. */
export function nodeLoader({ src }) {
  return `https://img.example.com/v1/image?url=${encodeURIComponent(src)}`;
}

/**
 * Sizes by imgproxy behind the site img.example.com (images/imgproxy.yaml), without IMGPROXY_KEY: limit its
 * origins with IMGPROXY_ALLOWED_SOURCES. With a key, sign on the server.
 */
export default function imgproxyLoader({ src, width, quality }) {
  const options = `rs:fit:${width}:0/q:${quality ?? 75}`;
  return `https://img.example.com/unsafe/${options}/plain/${encodeURIComponent(src)}@webp`;
}
