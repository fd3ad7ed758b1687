package import Cluster
package import Ground
import NIOCore
import NodeConfiguration
import Platform
import Store
import Synchronization

/// The exchange of summaries with peers, for operators; nothing that the node decides depends on
/// it.
///
/// Confined to the hub's loop, except where a function says otherwise.
package final class PeerReporter: @unchecked Sendable {
    private let host: PeeringHost
    /// The repeated sending of the summary; `nil` before the start.
    private var task: RepeatedTask?
    private let state: Mutex<State>

    /// The state under the lock.
    private struct State {
        /// The parts of this node's summary that its settings give.
        var settings: MemberSummary
        /// The last summary of this node, and its time; `nil` after a change of the settings.
        var latest: (summary: MemberSummary, at: Instant)?
        /// What is known of the peers.
        var reports = PeerReports()
    }

    /// The age up to which a summary of this node is used again.
    private static let reuse = Interval.seconds(1)

    /// Creates a reporter that sends nothing yet.
    init(in host: PeeringHost, _ configuration: Configuration) {
        self.host = host
        state = Mutex(State(settings: MemberSummary(of: configuration)))
    }

    // MARK: Thread-safe functions

    /// The reports on this node's peers.
    package var reports: PeerReports { state.withLock { $0.reports } }

    /// Returns this node's summary, at most a second old; `nil` if the node has stopped.
    package func makeSummary() -> MemberSummary? {
        guard let service = host.service else { return nil }
        let now = SystemClock.now()
        let (known, settings) = state.withLock { ($0.latest, $0.settings) }
        if let known, now - known.at < Self.reuse { return known.summary }
        var summary = settings
        summary.name = Self.name(summary.name, directory: host.tiers.disk?.volume?.path)
        service.complete(&summary)
        state.withLock { $0.latest = (summary, now) }
        return summary
    }

    /// Applies new settings.
    func reconfigure(_ configuration: Configuration) {
        state.withLock {
            $0.settings = MemberSummary(of: configuration)
            $0.latest = nil
        }
    }

    /// Returns the name of a node: the one of the setting, the name of its directory if the
    /// setting says so, or the machine's host name without the setting.
    private static func name(_ configured: String, directory: String?) -> String {
        switch configured {
        case "": return Configuration.hostName
        case NodeID.directoryName:
            return directory?.split(separator: "/").last.map(String.init) ?? Configuration.hostName
        default: return configured
        }
    }

    // MARK: Functions for the hub

    /// Sends this node's summary to all peers of `hub` at intervals from now on.
    func start(for hub: PeerHub) {
        let interval = TimeAmount.nanoseconds(MemberSummary.interval.nanoseconds)
        task = hub.loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) {
            [weak self, weak hub] _ in
            guard let self, let hub else { return }
            send(to: Array(hub.view.connections.values))
        }
    }

    /// Ends the sending.
    func stop() {
        task?.cancel()
    }

    /// Sends this node's summary on some connections.
    private func send(to connections: [PeerConnection]) {
        guard !connections.isEmpty, let summary = makeSummary() else { return }
        for connection in connections { connection.send(summary) }
    }

    /// Adopts a new view of the members, and sends this node's summary to those that it has
    /// connected with since `before`.
    func viewChanged(from before: MemberView, to view: MemberView) {
        state.withLock { $0.reports.update(view, now: SystemClock.now()) }
        send(to: view.connections.filter { before.connections[$0.key] !== $0.value }.map(\.value))
    }

    /// Records the summary of a peer that `view` knows.
    func received(_ summary: MemberSummary, from peer: NodeID, in view: MemberView) {
        guard let record = view.records.first(where: { $0.member.id == peer }) else { return }
        state.withLock {
            $0.reports.summaries.receive(summary, from: record.member, now: SystemClock.now())
        }
    }

    /// Records why a node cannot be a peer; `dialled` is `nil` if it has dialled.
    func peerRejected(_ remote: String, dialled: PeerAddress?, _ reason: PeerRejections.Reason) {
        state.withLock {
            $0.reports.rejections.record(
                remote, dialled: dialled, reason, now: SystemClock.now())
        }
    }

    /// Records that the node at `remote` is a peer.
    func peerAccepted(_ remote: String, _ member: Member) {
        state.withLock {
            $0.reports.rejections.clear(remote)
            $0.reports.rejections.clear("\(member.address)")
        }
    }
}

/// What a node knows of its peers for operators.
package struct PeerReports: Sendable {
    /// The summaries that other members have sent.
    package fileprivate(set) var summaries = MemberSummaryTable()
    /// The nodes that cannot be peers.
    package fileprivate(set) var rejections = PeerRejections()
    /// The time since when a member that is alive has had no connection with this node.
    private var unconnectedSince: [NodeID: Instant] = [:]

    /// Adopts a new view of the members.
    fileprivate mutating func update(_ view: MemberView, now: Instant) {
        summaries.retain(Set(view.records.map(\.member.id)))
        let before = unconnectedSince
        unconnectedSince = [:]
        for record in view.records.dropFirst() where record.state == .alive {
            let id = record.member.id
            if view.connections[id] == nil { unconnectedSince[id] = before[id] ?? now }
        }
    }

    /// Returns how long a member that is alive has had no connection with this node; `nil` if it
    /// has one or is not alive.
    package func unconnectedDuration(of id: NodeID, now: Instant) -> Interval? {
        unconnectedSince[id].map { now - $0 }
    }
}

extension MemberSummary {
    /// Creates a summary without counts; its name is that of the setting, or empty.
    fileprivate init(of configuration: Configuration) {
        self.init(name: configuration.nodeName ?? "", version: Configuration.version)
        adminURL = configuration.adminAdvertise?.description ?? ""
        settings = configuration.sharedSettings
    }
}
