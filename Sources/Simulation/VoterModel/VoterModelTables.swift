import Cluster
import Ground

/// Numbers for the parts of states, and a cache of what the production code did.
///
/// A node in the same state that handles the same event does the same again. So the code runs once
/// for each pair, and a state of the whole cluster is a few numbers.
struct VoterModelTables: Sendable {
    static let nodesMax = 4

    /// A voter set with its members as a mask.
    struct SetFacts: Sendable {
        let mask: UInt8
        let generation: Int
    }

    /// The facts about a consensus record; nodes are given by index, sets and ballots by number.
    struct RecordFacts: Sendable {
        let base: UInt16
        let generation: Int
        let member: Int
        let ballot: UInt16
        /// The proposer of the ballot.
        let owner: Int
        /// The members that the ballot excludes from the majority, as a mask.
        let without: UInt8
        /// The set that a vote is for; `nil` for other records.
        let next: UInt16?
    }

    /// A state of one node.
    struct NodeFacts: Sendable {
        let set: UInt16
        /// The set before it, until the present one is settled.
        let previous: UInt16?
        let generation: Int
        /// The response that the node sends to a request.
        let answer: UInt16
        /// True if writes are pending.
        let isWaiting: Bool
        /// The lowest generation of its pending writes.
        let oldestWaiting: Int
        /// True if the node has applied the purge.
        let hasApplied: Bool
        /// True if the node has synced the purge.
        let hasSynced: Bool
        let hasLateAnswer: Bool
        let hasRepeatedVote: Bool
        let isContradicted: Bool
        /// True if the node breaks the guarantee of the fence.
        let breaksPromise: Bool
    }

    /// The result of an event at a node.
    struct Transition: Sendable {
        let node: UInt32
        /// The record that the event has synced.
        let record: UInt16?
    }

    private(set) var sets: [SetFacts] = []
    private(set) var records: [RecordFacts] = []
    private(set) var recordValues: [ConsensusRecord] = []
    private(set) var nodes: [NodeFacts] = []
    private(set) var nodeValues: [VoterModelNode] = []
    private(set) var responses: [FenceResponse] = []
    private var setNumbers: [VoterSet: UInt16] = [:]
    private var ballotNumbers: [Ballot: UInt16] = [:]
    private var recordNumbers: [ConsensusRecord: UInt16] = [:]
    private var nodeNumbers: [VoterModelNode.Key: UInt32] = [:]
    private var answerNumbers: [FenceResponse: UInt16] = [:]
    private var outcomes: [UInt64: Transition] = [:]

    /// Returns the id of the node with an index.
    static func node(_ place: Int) -> NodeID { NodeID(low: UInt64(place) + 1, high: 0) }

    /// Returns the index of a node.
    static func place(_ node: NodeID) -> Int { Int(node.low) - 1 }

    /// Returns the mask of a list of nodes.
    static func mask(_ nodes: [NodeID]) -> UInt8 { nodes.reduce(0) { $0 | 1 << place($1) } }

    /// Returns the nodes of a mask, ascending.
    static func nodes(_ mask: UInt8) -> [NodeID] {
        (0..<nodesMax).filter { mask & 1 << $0 != 0 }.map(node)
    }

    // MARK: Numbers

    /// Returns the number of a voter set, a new one if it is unknown.
    mutating func number(of set: VoterSet) -> UInt16 {
        if let number = setNumbers[set] { return number }
        let number = UInt16(sets.count)
        sets.append(
            SetFacts(mask: Self.mask(set.members), generation: Int(set.generation)))
        setNumbers[set] = number
        return number
    }

    /// Returns the number of a record, a new one if it is unknown.
    mutating func number(of record: ConsensusRecord) -> UInt16 {
        if let number = recordNumbers[record] { return number }
        var next: UInt16?
        if case .vote(let change, _) = record.body, let set = record.base.applying(by: change) {
            next = self.number(of: set)
        }
        let base = self.number(of: record.base)
        let ballot = ballotNumbers[record.ballot] ?? UInt16(ballotNumbers.count)
        ballotNumbers[record.ballot] = ballot
        let number = UInt16(records.count)
        recordValues.append(record)
        records.append(
            RecordFacts(
                base: base, generation: Int(record.base.generation),
                member: Self.place(record.member), ballot: ballot,
                owner: Self.place(record.ballot.proposer),
                without: Self.mask(record.ballot.excluded), next: next))
        recordNumbers[record] = number
        return number
    }

    /// Returns the number of a node state, a new one if its key is unknown.
    mutating func number(of node: VoterModelNode) -> UInt32 {
        let key = node.key
        if let number = nodeNumbers[key] { return number }
        guard let standing = node.consensus.configuration else {
            preconditionFailure("a node that follows nothing: \(node)")
        }
        var oldestWaiting = Int.max
        for case .record(let record) in node.pendingWrites {
            oldestWaiting = min(oldestWaiting, Int(record.base.generation))
        }
        let set = self.number(of: standing.set)
        let previous = standing.previous.map { self.number(of: $0) }
        let response = self.number(of: node.response)
        let number = UInt32(nodes.count)
        nodeValues.append(node)
        nodes.append(
            NodeFacts(
                set: set, previous: previous, generation: Int(standing.set.generation),
                answer: response, isWaiting: !node.pendingWrites.isEmpty,
                oldestWaiting: oldestWaiting, hasApplied: node.hasApplied,
                hasSynced: node.hasSynced, hasLateAnswer: node.hasDelayedResponse,
                hasRepeatedVote: node.consensus.hasRepeatedVote,
                isContradicted: node.consensus.conflict != nil,
                breaksPromise: node.violatesFence))
        nodeNumbers[key] = number
        return number
    }

    /// Returns the number of a response, a new one if it is unknown.
    private mutating func number(of response: FenceResponse) -> UInt16 {
        if let number = answerNumbers[response] { return number }
        let number = UInt16(responses.count)
        responses.append(response)
        answerNumbers[response] = number
        return number
    }

    // MARK: Events

    /// An event at one node as a number: the kind in the highest byte, the sender or target in the
    /// next, and the record or response in the lower 16 bits.
    enum Event {
        static let purged: UInt32 = 1 << 24
        static let synced: UInt32 = 2 << 24
        static let delayedReceived: UInt32 = 3 << 24
        static let observed: UInt32 = 4 << 24
        static let notObserved: UInt32 = 5 << 24
        static let read: UInt32 = 6 << 24
        static let responded: UInt32 = 7 << 24
        static let respondedLate: UInt32 = 8 << 24
        static let addBegun: UInt32 = 9 << 24
        static let removeBegun: UInt32 = 10 << 24
        static let removalOrdered: UInt32 = 11 << 24
        static let voteRepeated: UInt32 = 12 << 24

        /// Returns the number of an event from its parts.
        static func with(_ kind: UInt32, _ place: Int, _ number: UInt16 = 0) -> UInt32 {
            kind | UInt32(place) << 16 | UInt32(number)
        }
    }

    /// Returns the result of an event at a node state, from the cache or by running the code.
    mutating func outcome(of event: UInt32, at node: UInt32) -> Transition {
        let pair = UInt64(node) << 32 | UInt64(event)
        if let outcome = outcomes[pair] { return outcome }
        var changed = nodeValues[Int(node)]
        let item = changed.handle(self.event(event))
        var record: UInt16?
        if case .record(let value) = item { record = number(of: value) }
        let outcome = Transition(node: number(of: changed), record: record)
        outcomes[pair] = outcome
        return outcome
    }

    /// Returns the event that a number stands for.
    private func event(_ code: UInt32) -> VoterModelNode.Event {
        let (place, number) = (Int(code >> 16 & 0xFF), Int(code & 0xFFFF))
        let node = Self.node(place)
        return switch code & 0xFF << 24 {
        case Event.purged: .purged
        case Event.synced: .synced
        case Event.delayedReceived: .delayedResponseReceived
        case Event.observed: .observed
        case Event.notObserved: .notObserved
        case Event.read: .read(recordValues[number])
        case Event.responded: .responseReceived(responses[number], by: node)
        case Event.respondedLate: .delayedResponseSent(responses[number], by: node)
        case Event.addBegun: .proposalStarted(.add(node))
        case Event.voteRepeated: .voteRepeated
        case Event.removeBegun: .proposalStarted(.remove([node]))
        default:
            .removalOrdered(
                .remove(Self.nodes(UInt8(place))), without: Self.nodes(UInt8(place)))
        }
    }
}
