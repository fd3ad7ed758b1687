// Kingfisher (8): images through a node. Not compiled here: Kingfisher needs Apple's systems.
// `server` returns the signed URL (deploy/recipes/sign.*); the key stays on the server.

import Kingfisher
import SwiftUI

let node = "https://img.example.com"

/// The address of an image at the node, for a node without signing keys.
func address(of image: URL) -> URL? {
    let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
    let value = image.absoluteString.addingPercentEncoding(withAllowedCharacters: unreserved)
    return value.flatMap { URL(string: "\(node)/v1/image?url=\($0)") }
}

struct Photo: View {
    let image: URL
    /// A signed URL changes with its expiry; the image's own URL is the key in Kingfisher's cache.
    var signed: URL?

    private var source: Source? {
        (signed ?? address(of: image)).map {
            .network(KF.ImageResource(downloadURL: $0, cacheKey: image.absoluteString))
        }
    }

    var body: some View {
        KFImage(source: source)
            .placeholder { ProgressView() }
            // How long a purged image may still be shown: Kingfisher ignores Cache-Control.
            .diskCacheExpiration(.seconds(300))
            .resizable()
    }
}
