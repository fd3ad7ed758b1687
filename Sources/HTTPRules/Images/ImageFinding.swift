/// What the first bytes of a body tell of it.
package enum ImageProbeResult: Hashable, Sendable {
    /// Nothing yet.
    case needsMore
    /// It is an image of the kind that it claims to be, or of a known kind while its type is none.
    case image(ImageMetadata)
    /// It is not what its type says; with facts, if it is an image of another kind.
    case typeMismatch(ImageMetadata?)
    /// It begins as its type says, but its size cannot be read: it is cut, damaged, has no pixel,
    /// or keeps its header behind more bytes than are looked at.
    case unreadable
    /// Its type and its first bytes are of no known kind, or it is coded: there is nothing to be
    /// said.
    case unknown

    package var metadata: ImageMetadata? {
        switch self {
        case .image(let facts): facts
        case .typeMismatch(let facts): facts
        case .needsMore, .unreadable, .unknown: nil
        }
    }
}

/// What an image's header says.
package struct ImageMetadata: Hashable, Sendable {
    package var format: ImageFormat
    /// Nil for a format without a size in pixels (SVG), and for one whose size may stand at its end
    /// (TIFF).
    package var size: PixelSize?

    package init(format: ImageFormat, size: PixelSize?) {
        self.format = format
        self.size = size
    }
}
