import Cluster
import Ground

/// A node's replication of invalidations with an arbitrary peer, on a disk that syncs at once.
///
/// Invariants: nothing traps, and everything terminates; the node's messages to the peer can be
/// sent; a record is applied once, unless its stream was retired in between, and before the window
/// that it may open is published.
struct ExchangeUnderTest {
    private var exchange: InvalidationReplication
    private var dice = SplitMix64(seed: 5)
    private let peer: NodeID
    private var applied: Set<RecordID> = []
    private var isWriting = false
    /// The latest round request to the peer.
    private var asked = (round: UInt64(0), digest: UInt64(0))

    private static let stepsMax = 1_000

    init(node: NodeID, peer: NodeID, now: Instant) {
        self.peer = peer
        let process = ProcessID(using: &dice)
        var start = InvalidationReplication.InitialState(
            node: node, process: process, firstRound: 1)
        start.mayBootstrap = true
        exchange = InvalidationReplication(start, now: now)
    }

    /// Starts the node and connects the peer; returns the node's messages.
    mutating func begin(now: Instant) -> [InvalidationMessage] {
        var effects: [InvalidationEffect] = []
        exchange.started(now: now, using: &dice, effects: &effects)
        let member = ReplicationMember(peer, ProcessID(using: &dice), .live)
        return perform(effects, now) + handle(.membersChanged([member]), now: now)
            + handle(.connected(peer, on: ConnectionID(1)), now: now)
            + handle(.formationRuleChanged(.unanimous), now: now)
    }

    /// Receives a message; returns the node's messages.
    mutating func receive(_ message: InvalidationMessage, now: Instant) -> [InvalidationMessage] {
        handle(.messageReceived(fitting(message), from: peer), now: now)
    }

    /// Turns a reply to round 0 into one to the latest request, which no input can know.
    private func fitting(_ message: InvalidationMessage) -> InvalidationMessage {
        switch message {
        case .roundUnchanged(round: 0, _, let view):
            return .roundUnchanged(round: asked.round, digest: asked.digest, view: view)
        case .roundResponse(var response, let retired) where response.round == 0:
            response.round = asked.round
            return .roundResponse(response, retired: retired)
        default: return message
        }
    }

    /// Receives the invalidations carried by a query; returns the node's messages.
    mutating func receive(_ query: PeerQuery, now: Instant) -> [InvalidationMessage] {
        let records = query.invalidations.compactMap { InvalidationRecord.read($0.span) }
        defer { _ = exchange.isBehind(peer) }
        return handle(
            .requestInvalidationsReceived(
                appliedPositions: query.positions, records: records, from: peer), now: now)
    }

    /// Runs the timer, if it is due; returns the node's messages.
    mutating func advance(to now: Instant) -> [InvalidationMessage] {
        exchange.nextTick <= now ? handle(.ticked, now: now) : []
    }

    // MARK: Execution

    private mutating func handle(_ event: ReplicationEvent, now: Instant) -> [InvalidationMessage] {
        var effects: [InvalidationEffect] = []
        exchange.handle(event, now: now, using: &dice, effects: &effects)
        return perform(effects, now)
    }

    /// Executes the effects, and those that follow from them.
    private mutating func perform(
        _ first: [InvalidationEffect], _ now: Instant
    ) -> [InvalidationMessage] {
        var messages = sentMessages(first)
        for _ in 0..<Self.stepsMax {
            guard isWriting else { return messages }
            isWriting = false
            var effects: [InvalidationEffect] = []
            exchange.handle(.synced, now: now, using: &dice, effects: &effects)
            messages += sentMessages(effects)
        }
        preconditionFailure("the writing does not end")
    }

    private mutating func sentMessages(_ effects: [InvalidationEffect]) -> [InvalidationMessage] {
        var messages: [InvalidationMessage] = []
        for effect in effects {
            switch effect {
            case .apply(let record, _):
                precondition(applied.insert(record.id).inserted, "applied twice")
            case .write(let writes):
                precondition(!isWriting, "writes while it writes")
                isWriting = true
                for case .metadata(let note) in writes {
                    switch note {
                    case .retired(let position): forget(position.process)
                    case .forgotten(let process): forget(process)
                    case .dropped, .consensusState: break
                    }
                }
            case .send(let message, let nodes):
                guard nodes.contains(peer) else { continue }
                if case .roundRequest(let round, let digest) = message { asked = (round, digest) }
                messages.append(message)
            case .publishWindow(let window):
                precondition(window == exchange.window)
            case .applyLocally, .applyFloors, .ownRecordsSynced, .receiptsSettled, .reportConflict:
                break
            }
        }
        return messages
    }

    private mutating func forget(_ stream: ProcessID) {
        applied = applied.filter { $0.stream != stream }
    }
}
