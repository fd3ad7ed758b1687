package import Ground

/// What one record of the invalidation log says.
package struct Invalidation: Hashable, Sendable {
    /// The client's, or made by the node that took it: 1 to ``idBytesMax`` bytes.
    ///
    /// Empty in a record of the count, and in what is not understood where none could be read.
    package var clientID: [UInt8]
    package var action: Action

    package enum Action: Hashable, Sendable {
        /// Entries are gone or stale.
        case purge(Purge)
        /// A word in the agreement on whom majorities are of; it does nothing to entries.
        case consensus(ConsensusRecord)
        /// The whole content, of a later version or damaged: kept, told on and applied as
        /// everything, soft.
        case unrecognized([UInt8])
    }

    package init(id: [UInt8], _ action: Action) {
        self.clientID = id
        self.action = action
    }

    /// What it does to entries; nil if nothing.
    package var purge: Purge? {
        switch action {
        case .purge(let purge): purge
        case .consensus: nil
        case .unrecognized: .everythingSoft
        }
    }

    /// The most bytes of an id.
    package static let idBytesMax = 128
    /// The most targets that a node puts in one record.
    package static let targetsMax = 256
    /// The most bytes of content that a node makes; a record of it fits in a frame.
    package static let contentBytesMax = 48 << 10
    /// The most bytes of a target's name; of a host 255.
    package static let nameBytesMax = PeerProtocol.keyBytesMax
}

/// Which entries are no longer to be used as they are, and how.
package struct Purge: Hashable, Sendable {
    package var mode: Mode
    /// At least one.
    package var targets: [PurgeTarget]

    package enum Mode: UInt8, Hashable, Sendable {
        /// Entry and validators are gone.
        case hard = 1
        /// Stale at once.
        case soft = 2
    }

    package init(_ mode: Mode, _ targets: [PurgeTarget]) {
        self.mode = mode
        self.targets = targets
    }

    /// What is applied for an invalidation that is not understood, and for records that can no
    /// longer be had.
    package static let everythingSoft = Purge(.soft, [.everything])
}

/// Why an invalidation cannot be put in the log; nothing was changed.
package enum InvalidationFault: Error, Hashable, Sendable {
    /// The id is empty or longer than ``UnsafeMethodInvalidation/idBytesMax``, or a record of the
    /// count has one.
    case invalidID
    /// There is no target, or there are more than ``UnsafeMethodInvalidation/targetsMax``.
    case invalidTargetCount
    /// A target's name is empty or too long.
    case invalidTarget
    /// All of it is longer than ``UnsafeMethodInvalidation/contentBytesMax``.
    case tooLong
}
