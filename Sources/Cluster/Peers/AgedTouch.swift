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

    private static let tag: UInt16 = 1
    private static let bytesCount = 24

    /// The frame of a batch; see "TOUCHES" in <doc:PeerProtocol>.
    ///
    /// - Throws: ``SendRefusal/tooLong(_:)`` for more than ``PeerProtocol/touchesMax``.
    package static func frame(_ touches: [AgedTouch]) throws(SendRefusal) -> [UInt8] {
        guard touches.count <= PeerProtocol.touchesMax else { throw .tooLong(.touches) }
        var writer = StructureWriter.payload
        writer.endFixedPart()
        for touch in touches {
            writer.beginField(tag, bytesCount: bytesCount)
            writer.put(touch.digest)
            writer.put(touch.count)
            writer.put(touch.ageSeconds)
        }
        return try writer.frame(.touches)
    }

    /// The batch in `payload`.
    ///
    /// - Throws: what is wrong with it.
    package static func read(payload: Span<UInt8>) throws(PeerFault) -> [AgedTouch] {
        var structure = try PeerStructure(payload, fixedBytes: 2, in: .touches)
        var touches: [AgedTouch] = []
        while let field = try structure.next(payload) {
            guard field.tag == tag else { continue }
            try structure.require(bytesCount, of: field)
            guard touches.count < PeerProtocol.touchesMax else { throw .tooLong(.touches) }
            let start = field.range.lowerBound
            touches.append(
                AgedTouch(
                    digest: payload.digest(at: start),
                    count: payload.little32(at: start + 16),
                    ageSeconds: payload.little32(at: start + 20)))
        }
        return touches
    }
}
