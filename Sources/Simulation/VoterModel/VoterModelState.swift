/// A state of the cluster, as numbers of ``VoterModelTables``.
struct VoterModelState: Sendable {
    /// One stream of records, as far as it is synced at its writer; a crash begins a new one.
    struct RecordStream: Sendable {
        let writer: Int
        var records: [UInt16] = []
        /// How many each node has read.
        var read: [UInt8]
    }

    enum PurgeState: Hashable, Sendable {
        case notIssued
        case issued
        /// One node is held against it: a contact of one is nothing to another.
        case durable(watched: Int)
    }

    var nodes: [UInt32]
    var streams: [RecordStream]
    /// The sets that were decided, from the first that still matters to somebody.
    var decided: [UInt16]
    /// No ballot is begun on a set of this generation.
    let lastGeneration: Int
    var purge = PurgeState.notIssued
    var crashes = 0
    var ballots = 0
    var operatorChanges = 0
    var delayedResponses = 0

    /// Nodes that follow `first`, of this generation.
    init(nodes: [UInt32], first: UInt16, lastGeneration: Int) {
        self.nodes = nodes
        self.lastGeneration = lastGeneration
        let read = [UInt8](repeating: 0, count: nodes.count)
        streams = nodes.indices.map { RecordStream(writer: $0, read: read) }
        decided = [first]
    }

    /// What tells states apart: 128 bits, by which two of a hundred million are taken for one with
    /// a probability of less than 10^-22.
    struct Digest: Hashable, Sendable {
        private var low: UInt64 = 0x6A09_E667_F3BC_C908
        private var high: UInt64 = 0xBB67_AE85_84CA_A73B

        init() {}

        mutating func take(_ number: Int) {
            let word = UInt64(truncatingIfNeeded: number)
            low = (low ^ word) &* 0x9E37_79B9_7F4A_7C15
            low ^= low >> 29
            high = (high &+ word) &* 0xD6E8_FEB8_6659_FD93
            high ^= high >> 32
        }
    }

    var digest: Digest {
        var digest = Digest()
        for node in nodes { digest.take(Int(node)) }
        for stream in streams {
            digest.take(stream.writer << 8 | stream.records.count)
            for record in stream.records { digest.take(Int(record)) }
            for (reader, count) in stream.read.enumerated() where reader != stream.writer {
                digest.take(Int(count))
            }
        }
        digest.take(decided.count)
        for set in decided { digest.take(Int(set)) }
        switch purge {
        case .notIssued: digest.take(0)
        case .issued: digest.take(1)
        case .durable(let watched): digest.take(2 + watched)
        }
        digest.take(crashes << 24 | ballots << 16 | operatorChanges << 8 | delayedResponses)
        digest.take(lastGeneration)
        return digest
    }
}

/// One step of a run; nodes go by their places, 0 the first.
enum VoterModelAction: Hashable, Sendable {
    /// The node issues the purge.
    case purge(UInt8)
    /// The node reads the purge from somebody who has synced it.
    case readPurge(UInt8)
    /// The first that the node has written and not synced is synced.
    case sync(UInt8)
    /// The node reads the next record of a stream.
    case read(UInt8, stream: UInt8)
    /// The node asks a member, and is answered.
    case request(UInt8, UInt8)
    /// The node asks a member, whose answer of now comes later.
    case requestDelayed(UInt8, UInt8)
    case receiveDelayed(UInt8)
    /// The node begins a ballot by which another is to be counted.
    case add(UInt8, UInt8)
    case remove(UInt8, UInt8)
    /// The node votes again for the change that made its set.
    case repeatVote(UInt8)
    /// The operator has the node forget the members of a mask by a majority of the others.
    case removeByOperator(UInt8, without: UInt8)
    /// The node has lost what it had not synced and, if it forgets, what it had read.
    case crash(UInt8, forgets: Bool)

    /// A stream is read on, even if the node stays as it is.
    var isReading: Bool {
        if case .read = self { true } else { false }
    }
}

/// Letters for nodes, as traces name them.
enum VoterModelNodeName {
    static func node(_ place: Int) -> String {
        String(UnicodeScalar(UInt8(ascii: "a") + UInt8(place)))
    }

    static func nodes(_ mask: UInt8) -> String {
        let letters = (0..<VoterModelTables.nodesMax).filter { mask & 1 << $0 != 0 }.map(node)
        return "{" + letters.joined(separator: ",") + "}"
    }
}
