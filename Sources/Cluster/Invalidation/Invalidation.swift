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

/// The content of a record, byte by byte; a structure as in <doc:PeerProtocol>.
///
/// The fixed part is its size (2), the kind (1), and of a purge the mode (1). A purge that means
/// more than version 1 can say has a new kind, mode or type of target, never a new field: a field
/// whose tag is not known is skipped, everything else that is not known makes the whole foreign.
extension Invalidation {
    fileprivate enum Kind: UInt8 {
        case purge = 1
        case count = 2
    }

    fileprivate enum Tag {
        static let id: UInt16 = 1
        /// List.
        static let target: UInt16 = 2
        static let count: UInt16 = 3
    }

    private static let fixedBytes = 4

    /// The bytes that are numbered, kept and told on.
    ///
    /// - Throws: ``InvalidationFault``, whichever is found first.
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
            writer.put(Kind.count.rawValue)
            writer.put(UInt8(0))
            writer.endFixedPart()
            writer.putField(Tag.count, try record.bytes())
        case .unrecognized: break
        }
        writer.putField(Tag.id, unlessEmpty: clientID)
        guard writer.bytes.count <= Self.contentBytesMax else { throw .tooLong }
        return writer.bytes
    }

    /// A purge has a client's id; a record of the count has none.
    private var isIDValid: Bool {
        if case .consensus = action { return clientID.isEmpty }
        return (1...Self.idBytesMax).contains(clientID.count)
    }

    /// `content` is of the kind of records of the count, whether it makes sense or not.
    static func isConsensus(_ content: [UInt8]) -> Bool { isConsensus(content.span) }

    static func isConsensus(_ content: Span<UInt8>) -> Bool {
        content.count >= fixedBytes && content[2] == Kind.count.rawValue
    }

    /// Reads `content`; never fails: what makes no sense is foreign.
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

    /// The client's id in `content`; empty if there is none.
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

    /// False if something in it is not known.
    private mutating func readFields(_ content: Span<UInt8>) throws(PeerFault) -> Bool {
        var structure = try StructureReader(
            content, fixedBytes: Self.fixedBytes, in: .invalidations)
        var targets: [PurgeTarget] = []
        var count: ConsensusRecord?
        var isWhole = true
        let kind = Kind(rawValue: content[2])
        while let field = try structure.next(content) {
            switch field.tag {
            case Tag.count where kind == .count:
                count = try .read(content.extracting(field.range), in: .invalidations)
            case Tag.id where kind != .count:
                // A longer one is not a client's to name.
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
        case .count:
            guard let count else { return false }
            action = .consensus(count)
        case nil: return false
        }
        return true
    }
}

extension PurgeTarget {
    /// Its names can be written and name something.
    fileprivate var isEncodable: Bool {
        let names = 1...Invalidation.nameBytesMax
        return switch self {
        case .url(let name), .tag(let name): names.contains(name.count)
        case .prefix(let host, let path):
            (1...255).contains(host.count) && path.count <= Invalidation.nameBytesMax
        case .everything: true
        }
    }

    /// The type, then the name; of a prefix the host's size, the host and the path.
    fileprivate var bytes: [UInt8] {
        switch self {
        case .url(let name), .tag(let name): [kind.rawValue] + name
        case .prefix(let host, let path):
            [kind.rawValue, UInt8(truncatingIfNeeded: host.count)] + host + path
        case .everything: [kind.rawValue]
        }
    }

    /// Nil if it is of a type that is not known, or names nothing.
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
