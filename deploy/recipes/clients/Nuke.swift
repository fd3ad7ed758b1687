// Nuke (12): images through a node. Not compiled here: Nuke needs Apple's systems.
// `signed` is the URL from the server (deploy/recipes/sign.*); the key stays on the server.

import Nuke
import NukeUI
import SwiftUI

/// A pipeline that obeys the node's Cache-Control and revalidates with its ETag.
let pipeline = ImagePipeline(configuration: .withURLCache)

func request(for image: URL, signed: URL) -> ImageRequest {
    // A signed URL changes with its expiry; the image's own URL is the key in memory.
    ImageRequest(url: signed, userInfo: [.imageIdKey: image.absoluteString])
}

struct Photo: View {
    let image: URL
    let signed: URL

    var body: some View {
        LazyImage(request: request(for: image, signed: signed)) { state in
            if let loaded = state.image { loaded.resizable() } else { ProgressView() }
        }
        .pipeline(pipeline)
    }
}
