import Cluster
import Ground

/// What a node does about invalidations with whatever a peer says of them, on a disk that syncs at
/// once.
///
/// Held: nothing traps, and everything ends; what the node says to the peer can be sent; a record
/// is applied once, unless its stream was retired in between, and before the window that may open
/// for it is given out.
struct ExchangeUnderTest {
    private var exchange: InvalidationReplication
    private var dice = SplitMix64(seed: 5)
    private let peer: NodeID
    private var applied: Set<RecordID> = []
    private var isWriting = false
    /// What the node asked the peer last.
    private var asked = (round: UInt64(0), digest: UInt64(0))

    private static let stepsMax = 1_000

    init(node: NodeID, peer: NodeID, now: Instant) {
        self.peer = peer
        let process = ProcessID(using: &dice)
        var start = InvalidationReplication.InitialState(
            node: node, process: process, firstRound: 1)
        start.mayOpen = true
        exchange = InvalidationReplication(start, now: now)
    }

    /// The node starts, and there is a connection with the peer; what it says to it.
    mutating func begin(now: Instant) -> [InvalidationMessage] {
        var effects: [InvalidationEffect] = []
        exchange.started(now: now, using: &dice, effects: &effects)
        let member = ReplicationMember(peer, ProcessID(using: &dice), .here)
        return perform(effects, now) + tell(.membersChanged([member]), now: now)
            + tell(.connected(peer, on: OriginConnectionID(1)), now: now)
            + tell(.mayForm(.unanimous), now: now)
    }

    /// What the node says then.
    mutating func heard(_ message: InvalidationMessage, now: Instant) -> [InvalidationMessage] {
        tell(.message(fitting(message), from: peer), now: now)
    }

    /// An answer to round 0 is one to what the node asked last, which no input can know.
    private func fitting(_ message: InvalidationMessage) -> InvalidationMessage {
        switch message {
        case .unchanged(0, _, let view):
            return .unchanged(round: asked.round, digest: asked.digest, view: view)
        case .response(var response, let retired) where response.round == 0:
            response.round = asked.round
            return .response(response, retired: retired)
        default: return message
        }
    }

    /// The same of what comes with a question.
    mutating func asked(_ question: PeerQuery, now: Instant) -> [InvalidationMessage] {
        let records = question.invalidations.compactMap { InvalidationRecord.read($0.span) }
        defer { _ = exchange.isBehind(peer) }
        return tell(
            .question(knowledge: question.knowledge, records: records, from: peer), now: now)
    }

    /// Ticks, if it is time.
    mutating func passed(to now: Instant) -> [InvalidationMessage] {
        exchange.nextTick <= now ? tell(.ticked, now: now) : []
    }

    // MARK: Inside

    private mutating func tell(_ event: ReplicationEvent, now: Instant) -> [InvalidationMessage] {
        var effects: [InvalidationEffect] = []
        exchange.handle(event, now: now, using: &dice, effects: &effects)
        return perform(effects, now)
    }

    /// Does what is wanted, and what follows from that.
    private mutating func perform(
        _ first: [InvalidationEffect], _ now: Instant
    ) -> [InvalidationMessage] {
        var messages = said(first)
        for _ in 0..<Self.stepsMax {
            guard isWriting else { return messages }
            isWriting = false
            var effects: [InvalidationEffect] = []
            exchange.handle(.synced, now: now, using: &dice, effects: &effects)
            messages += said(effects)
        }
        preconditionFailure("the writing does not end")
    }

    private mutating func said(_ effects: [InvalidationEffect]) -> [InvalidationMessage] {
        var messages: [InvalidationMessage] = []
        for effect in effects {
            switch effect {
            case .apply(let record, _):
                precondition(applied.insert(record.name).inserted, "applied twice")
            case .write(let writes):
                precondition(!isWriting, "writes while it writes")
                isWriting = true
                for case .note(let note) in writes {
                    switch note {
                    case .retired(let position): leave(position.process)
                    case .forgotten(let process): leave(process)
                    case .dropped, .memory: break
                    }
                }
            case .send(let message, let nodes):
                guard nodes.contains(peer) else { continue }
                if case .round(let round, let digest) = message { asked = (round, digest) }
                messages.append(message)
            case .window(let window):
                precondition(window == exchange.window)
            case .applyLocally, .applyFloors, .issued, .settled, .contradiction: break
            }
        }
        return messages
    }

    private mutating func leave(_ stream: ProcessID) {
        applied = applied.filter { $0.stream != stream }
    }
}
