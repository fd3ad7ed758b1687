package import Ground

/// The content of a record of the invalidation log.
package struct Invalidation: Hashable, Sendable {
    /// The id chosen by the client, or by the node that received the request: 1 to ``idBytesMax``
    /// bytes.
    ///
    /// Empty in a consensus record, and in unrecognised content that has no readable id.
    package var clientID: [UInt8]
    /// The action that the record carries.
    package var action: Action

    /// The actions that a record can carry.
    package enum Action: Hashable, Sendable {
        /// Removes entries or makes them stale.
        case purge(Purge)
        /// Carries a step of the consensus on voters; does not affect entries.
        case consensus(ConsensusRecord)
        /// The whole content of a record of a later version, or a damaged one.
        ///
        /// It is kept, forwarded, and applied as ``Purge/everythingSoft``.
        case unrecognized([UInt8])
    }

    /// Creates an invalidation from its parts; ``content()`` validates it.
    package init(id: [UInt8], _ action: Action) {
        self.clientID = id
        self.action = action
    }

    /// The effect on entries; `nil` if there is none.
    package var purge: Purge? {
        switch action {
        case .purge(let purge): purge
        case .consensus: nil
        case .unrecognized: .everythingSoft
        }
    }

    /// The maximum size of an id in bytes.
    package static let idBytesMax = 128
    /// The maximum number of targets in a record that a node creates.
    package static let targetsMax = 256
    /// The maximum size of content that a node creates, in bytes; such a record fits in a frame.
    package static let contentBytesMax = 48 << 10
    /// The maximum size of a target's name in bytes; a host may have 255.
    package static let nameBytesMax = PeerProtocol.keyBytesMax
}

/// A purge: the entries that must not be used as they are, and whether they may be revalidated.
package struct Purge: Hashable, Sendable {
    /// The mode.
    package var mode: Mode
    /// The targets, at least one.
    package var targets: [PurgeTarget]

    /// The effect of a purge on the entries that it covers.
    package enum Mode: UInt8, Hashable, Sendable {
        /// Entries and their validators are removed.
        case hard = 1
        /// Entries become stale at once.
        case soft = 2
    }

    /// Creates a purge from its parts.
    package init(_ mode: Mode, _ targets: [PurgeTarget]) {
        self.mode = mode
        self.targets = targets
    }

    /// The purge that is applied for unrecognised invalidations and for records that are no longer
    /// available.
    package static let everythingSoft = Purge(.soft, [.everything])
}

/// The reason why an invalidation cannot be issued; nothing was changed.
package enum InvalidationFault: Error, Hashable, Sendable {
    /// The id is empty or longer than ``Invalidation/idBytesMax``, or a consensus record has one.
    case invalidID
    /// There is no target, or there are more than ``Invalidation/targetsMax``.
    case invalidTargetCount
    /// The name of a target is empty or too long.
    case invalidTarget
    /// The content is longer than ``Invalidation/contentBytesMax``.
    case tooLong
}

/// The encoding of a record's content: a structure as in <doc:PeerProtocol>.
///
/// The fixed part is its size (2), the kind (1), and for a purge the mode (1). A purge that needs
/// more than version 1 can express must have a new kind, mode or target type, never a new field. A
/// field with an unknown tag is skipped; anything else that is unknown makes the whole content
/// unrecognised.
extension Invalidation {
    fileprivate enum Kind: UInt8 {
        case purge = 1
        case consensus = 2
    }

    fileprivate enum Tag {
        static let id: UInt16 = 1
        /// The tag of the list of targets.
        static let target: UInt16 = 2
        static let consensus: UInt16 = 3
    }

    private static let fixedBytes = 4

    /// Returns the encoded content, which is numbered, kept and forwarded as it is.
    ///
    /// - Throws: The first ``InvalidationFault`` found.
    package func content() throws(InvalidationFault) -> [UInt8] {
        if case .unrecognized(let content) = action { return content }
        guard isIDValid else { throw .invalidID }
        var writer = StructureWriter()
        switch action {
        case .purge(let purge):
            guard (1...Self.targetsMax).contains(purge.targets.count) else {
                throw .invalidTargetCount
            }
            writer.put(Kind.purge.rawValue)
            writer.put(purge.mode.rawValue)
            writer.endFixedPart()
            for target in purge.targets {
                guard target.isEncodable else { throw .invalidTarget }
                writer.putField(Tag.target, target.bytes)
            }
        case .consensus(let record):
            writer.put(Kind.consensus.rawValue)
            writer.put(UInt8(0))
            writer.endFixedPart()
            writer.putField(Tag.consensus, try record.bytes())
        case .unrecognized: break
        }
        writer.putField(Tag.id, unlessEmpty: clientID)
        guard writer.bytes.count <= Self.contentBytesMax else { throw .tooLong }
        return writer.bytes
    }

    /// True if a purge has a client id of valid size, or a consensus record has none.
    private var isIDValid: Bool {
        if case .consensus = action { return clientID.isEmpty }
        return (1...Self.idBytesMax).contains(clientID.count)
    }

    /// Returns true if `content` is of the kind of consensus records, even if malformed.
    static func isConsensus(_ content: [UInt8]) -> Bool { isConsensus(content.span) }

    static func isConsensus(_ content: Span<UInt8>) -> Bool {
        content.count >= fixedBytes && content[2] == Kind.consensus.rawValue
    }

    /// Decodes `content`; malformed content becomes ``Action/unrecognized(_:)``.
    package init(content: Span<UInt8>) {
        clientID = []
        action = .purge(.everythingSoft)
        let isUnderstood: Bool
        do throws(PeerFault) {
            isUnderstood = try readFields(content)
        } catch {
            isUnderstood = false
        }
        if !isUnderstood { action = .unrecognized(content.copy(0..<content.count)) }
    }

    /// Returns the client id in `content`, or an empty array if there is none.
    static func clientID(in content: Span<UInt8>) -> [UInt8] {
        var found: [UInt8] = []
        guard !isConsensus(content),
            var structure = try? StructureReader(
                content, fixedBytes: fixedBytes, in: .invalidations)
        else { return [] }
        while let field = try? structure.next(content) {
            guard field.tag == Tag.id, field.range.count <= idBytesMax else { continue }
            found = content.copy(field.range)
        }
        return found
    }

    /// Decodes the fields; returns false if something is unknown or a required field is absent.
    ///
    /// - Throws: The fault, if a structure is truncated or malformed.
    private mutating func readFields(_ content: Span<UInt8>) throws(PeerFault) -> Bool {
        var structure = try StructureReader(
            content, fixedBytes: Self.fixedBytes, in: .invalidations)
        var targets: [PurgeTarget] = []
        var record: ConsensusRecord?
        var isWhole = true
        let kind = Kind(rawValue: content[2])
        while let field = try structure.next(content) {
            switch field.tag {
            case Tag.consensus where kind == .consensus:
                record = try .read(content.extracting(field.range), in: .invalidations)
            case Tag.id where kind != .consensus:
                // A longer id was not made by a client.
                if field.range.count <= Self.idBytesMax { clientID = content.copy(field.range) }
            case Tag.target:
                if let target = PurgeTarget(content, field.range) {
                    targets.append(target)
                } else {
                    isWhole = false
                }
            default: continue
            }
        }
        switch kind {
        case .purge:
            guard let mode = Purge.Mode(rawValue: content[3]), isWhole, !targets.isEmpty,
                !clientID.isEmpty
            else { return false }
            action = .purge(Purge(mode, targets))
        case .consensus:
            guard let record else { return false }
            action = .consensus(record)
        case nil: return false
        }
        return true
    }
}

extension PurgeTarget {
    /// True if the names have valid sizes.
    fileprivate var isEncodable: Bool {
        let names = 1...Invalidation.nameBytesMax
        return switch self {
        case .url(let name), .tag(let name): names.contains(name.count)
        case .prefix(let host, let path):
            (1...255).contains(host.count) && path.count <= Invalidation.nameBytesMax
        case .everything: true
        }
    }

    /// The encoded target: the type, then the name; a prefix has the host's size, the host and the
    /// path.
    fileprivate var bytes: [UInt8] {
        switch self {
        case .url(let name), .tag(let name): [kind.rawValue] + name
        case .prefix(let host, let path):
            [kind.rawValue, UInt8(truncatingIfNeeded: host.count)] + host + path
        case .everything: [kind.rawValue]
        }
    }

    /// Decodes a target; `nil` if its type is unknown or its name is invalid.
    fileprivate init?(_ content: Span<UInt8>, _ range: Range<Int>) {
        guard !range.isEmpty, let kind = Kind(rawValue: content[range.lowerBound]) else {
            return nil
        }
        let name = (range.lowerBound + 1)..<range.upperBound
        switch (kind, name.isEmpty) {
        case (.everything, _): self = .everything
        case (_, true): return nil
        case (.url, _): self = .url(content.copy(name))
        case (.tag, _): self = .tag(content.copy(name))
        case (.prefix, _):
            let start = name.lowerBound + 1
            let end = start + Int(content[name.lowerBound])
            guard end > start, end <= name.upperBound else { return nil }
            self = .prefix(
                host: content.copy(start..<end), path: content.copy(end..<name.upperBound))
        }
    }
}
