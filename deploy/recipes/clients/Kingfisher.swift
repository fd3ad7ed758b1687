// Kingfisher (8): images through a node. Not compiled here: Kingfisher needs Apple's systems.
// `server` returns the signed URL (deploy/recipes/sign.*); the key stays on the server.

import Kingfisher
import SwiftUI

let node = "https://img.example.com"

/// The address of an image at the node, for a node without signing keys.
func address(of image: URL) -> URL {
    var components = URLComponents(string: node + "/v1/image")!
    let unreserved = CharacterSet.alphanumerics.intersection(.init(charactersIn: "\0"..."\u{7F}"))
        .union(.init(charactersIn: "-._~"))
    let value = image.absoluteString.addingPercentEncoding(withAllowedCharacters: unreserved)!
    components.percentEncodedQuery = "url=" + value
    return components.url!
}

struct Photo: View {
    let image: URL
    /// A signed URL changes with its expiry; the image's own URL is the key in Kingfisher's cache.
    var signed: URL?

    var body: some View {
        KFImage(source: .network(KF.ImageResource(
            downloadURL: signed ?? address(of: image), cacheKey: image.absoluteString)))
            .placeholder { ProgressView() }
            // How long a purged image may still be shown: Kingfisher ignores Cache-Control.
            .diskCacheExpiration(.seconds(300))
            .resizable()
    }
}
