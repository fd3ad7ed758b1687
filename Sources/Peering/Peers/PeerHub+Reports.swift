package import Cluster
package import Ground
import NIOCore
import Platform
import Synchronization

/// What operators are told about a node's peers; nothing that the node decides depends on it.
package struct PeerReports: Sendable {
    /// The summaries that other members have sent.
    package fileprivate(set) var summaries = MemberSummaryTable()
    /// The nodes that cannot be peers.
    package fileprivate(set) var rejections = PeerRejections()
    /// The time since when a member that is alive has had no connection with this node.
    private var unconnectedSince: [NodeID: Instant] = [:]

    /// Creates the reports of a node that knows no peer.
    package init() {}

    /// Adopts a new view of the members.
    fileprivate mutating func update(_ view: MemberView, now: Instant) {
        summaries.retain(Set(view.records.map(\.member.id)))
        let unconnected = view.records.dropFirst().filter { record in
            record.state == .alive && view.connections[record.member.id] == nil
        }.map(\.member.id)
        let before = unconnectedSince
        unconnectedSince = Dictionary(
            uniqueKeysWithValues: unconnected.map { ($0, before[$0] ?? now) })
    }

    /// Returns how long a member that is alive has had no connection with this node; `nil` if it
    /// has one or is not alive.
    package func unconnectedDuration(of id: NodeID, now: Instant) -> Interval? {
        unconnectedSince[id].map { now - $0 }
    }
}

extension PeerHub {
    /// The reports on this node's peers; thread-safe.
    package var reports: PeerReports { publishedReports.withLock { $0 } }

    /// Sends this node's summary to all peers now and at intervals from now on; on the loop.
    func startSummaries() {
        let interval = TimeAmount.nanoseconds(MemberSummary.interval.nanoseconds)
        summaryTask = loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) {
            [weak self] _ in
            guard let self else { return }
            sendSummary(to: view.connections.keys.sorted())
        }
    }

    /// Sends this node's summary to the given members; on the loop.
    private func sendSummary(to members: [NodeID]) {
        let connections = members.compactMap { connection(to: $0) }
        guard !connections.isEmpty, let summary = host.service?.makeSummary() else { return }
        for connection in connections { connection.send(summary) }
    }

    /// Adopts a new view of the members, and sends this node's summary to those that it has
    /// connected with since `before`; on the loop.
    func reportView(_ view: MemberView, before: MemberView) {
        publishedReports.withLock { $0.update(view, now: SystemClock.now()) }
        let new = view.connections.filter { before.connections[$0.key] !== $0.value }
        sendSummary(to: new.keys.sorted())
    }

    /// Records the summary of the peer on a connection; ignored if that has been closed.
    func summaryReceived(_ summary: MemberSummary, on id: PeerConnectionID) {
        loop.execute { [self] in
            guard let peer = connections[id]?.peer,
                let member = view.records.first(where: { $0.member.id == peer })?.member
            else { return }
            publishedReports.withLock {
                $0.summaries.receive(summary, from: member, now: SystemClock.now())
            }
        }
    }

    /// Records why a node cannot be a peer; on the loop.
    func peerRejected(
        _ remote: String, dialled: PeerAddress?, _ reason: PeerRejections.Reason
    ) {
        publishedReports.withLock {
            $0.rejections.record(remote, dialled: dialled, reason, now: SystemClock.now())
        }
    }

    /// Records that the node at the other end of a connection is a peer; on the loop.
    func peerAccepted(_ connection: PeerConnection, _ member: Member) {
        publishedReports.withLock {
            $0.rejections.clear(connection.remote)
            $0.rejections.clear("\(member.address)")
        }
    }
}
