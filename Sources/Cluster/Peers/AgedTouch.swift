package import Ground

/// That an entry was used, as one node tells it to another: the last use is so long ago.
package struct AgedTouch: Hashable, Sendable {
    package var digest: EntryDigest
    /// Uses since the last touch that was handed on; saturating.
    package var count: UInt32
    /// Since the last of them.
    package var ageSeconds: UInt32

    package init(digest: EntryDigest, count: UInt32, ageSeconds: UInt32) {
        self.digest = digest
        self.count = count
        self.ageSeconds = ageSeconds
    }

    /// `touch`, told at the second `now` of this node's clock; what lies ahead of it has no age.
    package init(_ touch: Touch, now: UInt32) {
        self.init(
            digest: touch.digest, count: touch.count,
            ageSeconds: now > touch.lastAccess ? now - touch.lastAccess : 0)
    }

    /// The touch on the clock of who is told at the second `now`; not before its beginning.
    package func touch(now: UInt32) -> Touch {
        Touch(digest: digest, count: count, lastAccess: now > ageSeconds ? now - ageSeconds : 0)
    }
}

/// The batch is "TOUCHES" in <doc:PeerProtocol>.
extension AgedTouch: BatchElement {
    package static let kind = PeerFrameKind.touches
    package static let countMax = PeerProtocol.touchesMax
    package static let limit = PeerLimit.touches
    package static let bytesCount = 24

    package init(_ bytes: Span<UInt8>, at offset: Int) {
        self.init(
            digest: bytes.digest(at: offset), count: bytes.little32(at: offset + 16),
            ageSeconds: bytes.little32(at: offset + 20))
    }

    package func put(into writer: inout StructureWriter) {
        writer.put(digest)
        writer.put(count)
        writer.put(ageSeconds)
    }
}
