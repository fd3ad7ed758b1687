package import Ground

/// The validators that tell whether two responses are the same representation, so that one can
/// continue the body of the other (RFC 9110 §8.8, §15.3.7.3).
package struct RepresentationIdentity: Hashable, Sendable {
    /// The entity tag with its quotes and `W/`; empty if there is none.
    package var entityTag: [UInt8]
    /// The value of Last-Modified; `nil` if there is none.
    package var lastModified: WallTime?
    /// True if Last-Modified is at least a second older than Date (RFC 9110 §8.8.2.2).
    package var hasStrongDate: Bool
    /// The size of the whole body in bytes; `nil` if unknown.
    package var sizeBytes: UInt64?

    /// Creates an identity from its parts; `isStrongDate` becomes ``hasStrongDate``.
    package init(
        entityTag: [UInt8], lastModified: WallTime?, isStrongDate: Bool, sizeBytes: UInt64?
    ) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.hasStrongDate = isStrongDate
        self.sizeBytes = sizeBytes
    }

    /// True if another response can be recognised as the same, which needs a strong validator (RFC
    /// 9110 §8.8.1).
    ///
    /// An entity tag decides alone, even if it is weak and so prevents resumption. A date is
    /// sufficient only together with a length.
    package var canBeResumed: Bool {
        guard entityTag.isEmpty else { return entityTag.first == UInt8(ascii: "\"") }
        return hasStrongDate && sizeBytes != nil && lastModified != nil
    }

    /// True if the body of the other response may continue where one of this was interrupted.
    package func matches(_ other: RepresentationIdentity) -> Bool {
        guard canBeResumed, other.canBeResumed, entityTag == other.entityTag else { return false }
        if let sizeBytes, let size = other.sizeBytes, size != sizeBytes { return false }
        return !entityTag.isEmpty || lastModified == other.lastModified
    }
}
