/// Shared constants of the peer protocol, which <doc:PeerProtocol> specifies.
package enum PeerProtocol {
    /// The protocol versions that this program supports.
    package static let versions: ClosedRange<UInt16> = 1...1
    /// Maximum body bytes in one frame.
    package static let dataBytesMax = 16 << 10
    /// Maximum payload bytes of any other frame.
    package static let payloadBytesMax = 64 << 10
    /// Body bytes that may be in flight on a stream before the first grant.
    package static let windowBytes = 256 << 10
    /// Maximum bytes granted and not yet used.
    package static let windowBytesMax = Int(Int32.max)
    /// Maximum number of open queries of one side.
    package static let streamsMax = 1_024
    /// Maximum bytes of an entry's key.
    package static let keyBytesMax = 16 << 10
    /// Maximum bytes of the request's field lines in a query.
    package static let requestBytesMax = 32 << 10
    /// Maximum bytes of an entity tag in a query.
    package static let entityTagBytesMax = 1 << 10
    /// Maximum bytes of the id of the request that caused a query.
    package static let requestIDBytesMax = 128
    /// Maximum bytes of the traceparent in a query; later versions may exceed today's length.
    package static let traceParentBytesMax = 128
    /// Maximum bytes of the tracestate in a query.
    package static let traceStateBytesMax = 512
    /// Maximum number of stream positions in a query.
    package static let queryPositionsMax = 256
    /// Maximum bytes of all invalidations in a query.
    package static let invalidationBytesMax = 4 << 10
    /// Maximum number of positions of one kind in a message about invalidations, over all its
    /// frames.
    package static let messagePositionsMax = 8_192
    /// Maximum number of members in a confirmation.
    package static let confirmationMembersMax = 1_024
    /// Maximum number of record ranges in one repair request or response.
    package static let rangesMax = 512
    /// Maximum number of tags of an entry.
    package static let tagsMax = 1_000
    /// Maximum number of touches in one frame.
    package static let touchesMax = TouchQueue.batchKeys
    /// Maximum number of offers, or of offer outcomes, in one frame.
    package static let offersMax = 512
    /// Maximum bytes of an explanatory text for operators.
    package static let textBytesMax = 256

    /// The encoding of an unknown wall time.
    static let unknownTime = Int64.min

    /// Returns the newest version in both ranges; `nil` if there is none.
    package static func commonVersion(
        _ own: ClosedRange<UInt16>, _ theirs: ClosedRange<UInt16>
    ) -> UInt16? {
        let newest = min(own.upperBound, theirs.upperBound)
        return newest >= max(own.lowerBound, theirs.lowerBound) ? newest : nil
    }
}

/// A limit that something exceeds.
package enum PeerLimit: Hashable, Sendable {
    /// The payload of a frame other than DATA.
    case payload
    /// The payload of a DATA frame.
    case data
    /// An entry's key.
    case key
    /// The request's field lines in a query.
    case request
    /// An entity tag.
    case entityTag
    /// The request id or trace fields of a query.
    case requestTrace
    /// The number of stream positions.
    case positions
    /// The bytes of invalidations in a query.
    case invalidations
    /// The number of tags of an entry.
    case tags
    /// The number of touches in a frame.
    case touches
    /// The number of offers or outcomes in a frame.
    case offers
    /// The number of members in a confirmation.
    case confirmationMembers
    /// The number of record ranges.
    case ranges
    /// The number of elements in one field.
    case list
}
