import Ground

/// Who can serve, as far as this node knows: for receipts, and for who may open a cluster.
///
/// A member that is cut off may serve all the same. So it is dropped only when it has left, when it
/// was forgotten and cannot be current any more, or when it was away for as long as a counted
/// member is waited for; and somebody else who has it still names it. Whom this node has never
/// seen here those name who have.
struct ExchangeCompany: Sendable {
    private struct Known: Sendable {
        var process: ProcessID
        var presence: ExchangeMember.Presence
        var awaySince: Instant?
        var wasCounted = false
        /// There was a connection with it.
        var wasMet = false
        /// This node has it for a member no longer.
        var isDropped = false
    }

    let own: NodeID
    let fence: Interval
    let forgetAfter: Interval
    private var known = SortedTable<NodeID, Known>()
    /// Those that left by their own word; the oldest are dropped.
    ///
    /// Whoever still names them speaks of the past.
    private(set) var gone: [NodeID] = []
    private(set) var counted: [NodeID] = []
    /// The same, for looking up.
    private var countedSet: Set<NodeID> = []
    /// When somebody may be gone who is not yet.
    private(set) var nextReview: Instant?

    private static let goneMax = 1_024
    private static let noProcess = ProcessID(high: 0, low: 0)

    init(own: NodeID, settings: Fence.Settings) {
        self.own = own
        fence = settings.fence ?? .seconds(10)
        forgetAfter = settings.forgetAfter
    }

    /// There is a connection with `node`, whatever membership thinks of it; true if that is news.
    mutating func meet(_ node: NodeID) -> Bool {
        guard known[node]?.presence != .here || known[node]?.wasMet == false else { return false }
        known.update(node, or: Known(process: Self.noProcess, presence: .here)) {
            $0.presence = .here
            $0.awaySince = nil
            $0.isDropped = false
            $0.wasMet = true
        }
        planReview()
        return true
    }

    mutating func follow(_ members: [ExchangeMember], now: Instant) {
        var isNamed: Set<NodeID> = []
        for member in members where member.node != own {
            isNamed.insert(member.node)
            guard member.presence != .away || known[member.node] != nil else { continue }
            known.update(member.node, or: Known(process: member.process, presence: .here)) {
                $0.process = member.process
                $0.presence = member.presence
            }
        }
        known.updateAll { node, known in
            if !isNamed.contains(node), known.presence == .here { known.presence = .away }
            known.awaySince = known.presence == .here ? nil : known.awaySince ?? now
            if known.presence == .here { known.isDropped = false }
        }
        for node in known.keys where !isNamed.contains(node) && known[node]?.isDropped == true {
            known[node] = nil
        }
        planReview()
    }

    /// True if others count than before.
    mutating func count(_ members: [NodeID], now: Instant) -> Bool {
        guard members != counted else { return false }
        for node in members where node != own && known[node] == nil {
            known[node] = Known(process: Self.noProcess, presence: .away, awaySince: now)
        }
        counted = members
        let countedSet = Set(members)
        self.countedSet = countedSet
        known.updateAll { node, known in
            // Who is counted again begins anew.
            known.wasCounted = known.wasCounted || countedSet.contains(node)
            if countedSet.contains(node) { known.isDropped = false }
        }
        planReview()
        return true
    }

    /// Those that are here, by id.
    var present: [NodeID] {
        zip(known.keys, known.values).filter { $1.presence == .here }.map(\.0)
    }

    private mutating func planReview() {
        nextReview = zip(known.keys, known.values)
            .filter { !countedSet.contains($0) && !$1.isDropped }
            .compactMap { node, known in known.awaySince.map { $0 + patience(node, known) } }
            .min()
    }

    /// After being away for so long a member that does not count is this node's no longer.
    ///
    /// Others that met it later still name it. Of one that was never met here only they can have
    /// proven that it is current.
    private func patience(_ node: NodeID, _ known: Known) -> Interval {
        known.wasCounted || !known.wasMet || isReplaced(node) ? fence : forgetAfter
    }

    /// Another node of its name is here.
    private func isReplaced(_ node: NodeID) -> Bool {
        ([own] + present).contains { $0 != node && $0.isNamesake(of: node) }
    }

    /// Drops whoever is gone by now, and gives all others as the log has them.
    mutating func review(process: ProcessID, now: Instant) -> [LogMember] {
        var members = [LogMember(node: own, process: process, isCounted: countedSet.contains(own))]
        for (node, known) in zip(known.keys, known.values) {
            let isPatienceOver = known.awaySince.map { now - $0 >= patience(node, known) } ?? false
            if countedSet.contains(node) || !(isPatienceOver || known.presence == .left) {
                if known.isDropped { continue }
                let isCounted = countedSet.contains(node)
                members.append(
                    LogMember(node: node, process: known.process, isCounted: isCounted))
            } else if known.presence == .left {
                self.known[node] = nil
                gone.append(node)
            } else {
                self.known[node]?.isDropped = true
            }
        }
        gone.removeAll { self.known[$0] != nil }
        if gone.count > Self.goneMax { gone.removeFirst(gone.count - Self.goneMax) }
        planReview()
        return members
    }
}
