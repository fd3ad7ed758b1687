/// A state of the cluster, in the numbers of ``VoterModelTables``.
struct VoterModelState: Sendable {
    /// The synced part of one stream of records; a crash starts a new stream.
    struct RecordStream: Sendable {
        /// The node that writes the stream.
        let writer: Int
        var records: [UInt16] = []
        /// The number of records that each node has read.
        var read: [UInt8]
    }

    /// The progress of the purge.
    enum PurgeState: Hashable, Sendable {
        case notIssued
        case issued
        /// The purge is durable, and one node is checked for it; the contacts of different nodes
        /// are independent.
        case durable(watched: Int)
    }

    /// The state of each node.
    var nodes: [UInt32]
    var streams: [RecordStream]
    /// The decided sets, from the first that still matters to a node.
    var decided: [UInt16]
    /// The generation of sets on which no further ballot starts.
    let lastGeneration: Int
    var purge = PurgeState.notIssued
    /// The number of crashes so far.
    var crashes = 0
    /// The number of ballots so far.
    var ballots = 0
    /// The number of the operator's removals so far.
    var operatorChanges = 0
    /// The number of delayed responses so far.
    var delayedResponses = 0

    /// Creates a state in which the nodes follow the set `first`.
    init(nodes: [UInt32], first: UInt16, lastGeneration: Int) {
        self.nodes = nodes
        self.lastGeneration = lastGeneration
        let read = [UInt8](repeating: 0, count: nodes.count)
        streams = nodes.indices.map { RecordStream(writer: $0, read: read) }
        decided = [first]
    }

    /// A 128-bit hash of a state; the probability of a collision among a hundred million states is
    /// below 10^-22.
    struct Digest: Hashable, Sendable {
        private var low: UInt64 = 0x6A09_E667_F3BC_C908
        private var high: UInt64 = 0xBB67_AE85_84CA_A73B

        init() {}

        /// Adds a number to the hash.
        mutating func take(_ number: Int) {
            let word = UInt64(truncatingIfNeeded: number)
            low = (low ^ word) &* 0x9E37_79B9_7F4A_7C15
            low ^= low >> 29
            high = (high &+ word) &* 0xD6E8_FEB8_6659_FD93
            high ^= high >> 32
        }
    }

    /// The hash of the state.
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

/// One step of a run; nodes are given by index, from 0.
enum VoterModelAction: Hashable, Sendable {
    /// The node issues the purge.
    case purge(UInt8)
    /// The node reads the purge from a node that has synced it.
    case readPurge(UInt8)
    /// The first pending write of the node is synced.
    case sync(UInt8)
    /// The node reads the next record of a stream.
    case read(UInt8, stream: UInt8)
    /// The node sends a request to a member, which responds at once.
    case request(UInt8, UInt8)
    /// The node sends a request to a member; the response of now arrives later.
    case requestDelayed(UInt8, UInt8)
    case receiveDelayed(UInt8)
    /// The node starts a ballot to add another to the voter set.
    case add(UInt8, UInt8)
    case remove(UInt8, UInt8)
    /// The node repeats its vote for the change that made its set.
    case repeatVote(UInt8)
    /// The operator has the node remove the members of a mask, by a majority of the others.
    case removeByOperator(UInt8, without: UInt8)
    /// The node loses its unsynced writes and, with `forgets`, the records that it has read.
    case crash(UInt8, forgets: Bool)

    /// True for reads of a stream, which change the cluster's state even if the node's stays equal.
    var isReading: Bool {
        if case .read = self { true } else { false }
    }
}

/// The letters that name nodes in traces.
enum VoterModelNodeName {
    /// Returns the letter of a node.
    static func node(_ place: Int) -> String {
        String(UnicodeScalar(UInt8(ascii: "a") + UInt8(place)))
    }

    /// Returns the letters of the nodes in a mask, in braces.
    static func nodes(_ mask: UInt8) -> String {
        let letters = VoterModelTables.nodes(mask).map { node(VoterModelTables.place($0)) }
        return "{" + letters.joined(separator: ",") + "}"
    }
}
