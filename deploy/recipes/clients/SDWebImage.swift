// SDWebImage (5): images through a node. Not compiled here: SDWebImage needs Apple's systems.

import SDWebImage

/// Call once at the start: the two parameters of a signed URL are not part of the key in the cache.
func configureImages() {
    SDWebImageManager.shared.cacheKeyFilter = SDWebImageCacheKeyFilter { url in
        guard var components = URLComponents(url: url, resolvingAgainstBaseURL: false) else {
            return url.absoluteString
        }
        components.queryItems = components.queryItems?.filter {
            $0.name != "expires" && $0.name != "signature"
        }
        return components.string
    }
    // How long a purged image may still be shown: SDWebImage ignores Cache-Control.
    SDImageCache.shared.config.maxDiskAge = 300
}

/// `signed` is the URL from the server (deploy/recipes/sign.*); the key stays on the server.
func show(_ signed: URL, in view: UIImageView) {
    view.sd_setImage(with: signed, placeholderImage: nil, options: [.retryFailed])
}
