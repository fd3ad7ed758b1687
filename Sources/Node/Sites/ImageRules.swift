import Ground
import HTTPRules

/// What an answer has to be that was asked for as an image.
struct ImageRules: Sendable {
    /// What is taken for an image, and what is served beside.
    var types = ImageMediaTypes()
    /// Pixels of the largest image that is served; nil for no limit.
    var pixelsMax: UInt64?
    /// Images of pixels with a Content-Encoding are served, unseen.
    var acceptsContentCoding = false
    /// Freshness where the origin names none (RFC 9111 §4.2.2 leaves it to the cache).
    var defaultTTL = Interval.seconds(3600)
}
