package import Ground

/// An answer whose body was broken off, or one from which the rest might come: what tells whether
/// the two are one (RFC 9110 §8.8, §15.3.7.3).
package struct RepresentationIdentity: Hashable, Sendable {
    /// With its quotes and its `W/`; empty if there is none.
    package var entityTag: [UInt8]
    package var lastModified: WallTime?
    /// Last-Modified is at least a second older than Date (RFC 9110 §8.8.2.2).
    package var hasStrongDate: Bool
    /// Of the whole body, in bytes; nil if that is not known.
    package var sizeBytes: UInt64?

    package init(
        entityTag: [UInt8], lastModified: WallTime?, isStrongDate: Bool, sizeBytes: UInt64?
    ) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.hasStrongDate = isStrongDate
        self.sizeBytes = sizeBytes
    }

    /// Another answer can be told to be the same: only strong validators say so (RFC 9110 §8.8.1).
    ///
    /// An entity tag that is there decides, be it weak; a date does with a length alone.
    package var canBeResumed: Bool {
        guard entityTag.isEmpty else { return entityTag.first == UInt8(ascii: "\"") }
        return hasStrongDate && sizeBytes != nil && lastModified != nil
    }

    /// True if a body of the other answer goes on where one of this broke off.
    package func matches(_ other: RepresentationIdentity) -> Bool {
        guard canBeResumed, other.canBeResumed, entityTag == other.entityTag else { return false }
        if let sizeBytes, let size = other.sizeBytes, size != sizeBytes { return false }
        return !entityTag.isEmpty || lastModified == other.lastModified
    }
}
