/// Numbers of the peer protocol that more than one part of it needs; <doc:PeerProtocol> is the
/// specification.
package enum PeerProtocol {
    /// The versions that this program speaks.
    package static let versions: ClosedRange<UInt16> = 1...1
    /// The most bytes of a body in one frame.
    package static let dataBytesMax = 16 << 10
    /// The most bytes of the payload of any other frame.
    package static let payloadBytesMax = 64 << 10
    /// Bytes of a body that may be on their way on a stream before the first grant.
    package static let windowBytes = 256 << 10
    /// The most bytes that may ever be granted and not yet used.
    package static let windowBytesMax = Int(Int32.max)
    /// Questions of one side that may be open at once.
    package static let streamsMax = 1_024
    /// The most bytes of an entry's key.
    package static let keyBytesMax = 16 << 10
    /// The most bytes of the field lines that go with a question.
    package static let requestBytesMax = 32 << 10
    /// The most bytes of an entity tag in a question.
    package static let entityTagBytesMax = 1 << 10
    /// The most bytes of the id of the request for whose sake something is asked.
    package static let requestIDBytesMax = 128
    /// The most bytes of the traceparent that goes with a question; later versions may be longer
    /// than that of today.
    package static let traceParentBytesMax = 128
    /// The most bytes of the tracestate that goes with a question.
    package static let traceStateBytesMax = 512
    /// The most stream positions in a question.
    package static let queryPositionsMax = 256
    /// The most bytes of all invalidations in a question.
    package static let invalidationBytesMax = 4 << 10
    /// The most positions of a kind in one message about invalidations, of however many frames.
    package static let messagePositionsMax = 8_192
    /// The most members that a confirmation names.
    package static let confirmationMembersMax = 1_024
    /// The most ranges of records that are asked for, or answered for, at once.
    package static let rangesMax = 512
    /// The most tags of an entry.
    package static let tagsMax = 1_000
    /// The most touches in one frame.
    package static let touchesMax = TouchQueue.batchKeys
    /// The most offers, and answers to offers, in one frame.
    package static let offersMax = 512
    /// The most bytes of a text that explains something to operators.
    package static let textBytesMax = 256

    /// Stands for a wall time that is not known.
    static let unknownTime = Int64.min

    /// The newest version in both ranges; nil if there is none.
    package static func commonVersion(
        _ own: ClosedRange<UInt16>, _ theirs: ClosedRange<UInt16>
    ) -> UInt16? {
        let newest = min(own.upperBound, theirs.upperBound)
        return newest >= max(own.lowerBound, theirs.lowerBound) ? newest : nil
    }
}

/// Which limit something passes.
package enum PeerLimit: Hashable, Sendable {
    case payload
    case data
    case key
    case request
    case entityTag
    case requestTrace
    case positions
    case invalidations
    case tags
    case touches
    case offers
    case confirmationMembers
    case ranges
    /// Of one field.
    case list
}
