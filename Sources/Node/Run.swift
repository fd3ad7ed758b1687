import Glibc
import Logging
import NIOCore
package import NodeConfiguration
import ServiceLifecycle
import Store
import Synchronization
import UnixSignals
import Wire

/// The way in which a node ended.
package enum RunResult: Hashable, Sendable {
    /// The node was stopped, and every operation in progress was completed.
    case drained
    /// The node was stopped, and an operation in progress was aborted.
    case aborted
    /// The node failed to start, or found that another process runs as this node; the log has the
    /// reason.
    case failed
}

/// Sets the process-wide options; must be called before there is a second thread.
package func prepareProcess() {
    Allocator.limitArenas(forCores: System.coreCount)
    OpenSSLLibrary.disableExitCleanup()
    // The result of a write reveals that a client is gone; sendfile has no flag against the signal.
    _ = signal(SIGPIPE, SIG_IGN)
}

/// Ignores SIGHUP, which would end the process, until ``run(_:from:)`` traps it.
package func ignoreHangups() {
    _ = signal(SIGHUP, SIG_IGN)
}

/// Runs a node until SIGTERM or SIGINT, then drains it; a second signal aborts work still in
/// progress.
///
/// SIGHUP reloads `sources` and applies the settings that a running node can change.
///
/// - Parameters:
///   - configuration: the settings at the start.
///   - sources: the sources for reloads.
///
/// - Returns: how the node ended.
package func run(
    _ configuration: Configuration, from sources: ConfigurationSources
) async -> RunResult {
    // Before anything that takes time: until then signals go unnoticed.
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint, .sighup)
    let manager = ServiceNotifier.fromEnvironment()
    let sockets = PassedSockets.fromEnvironment()
    let log = NodeLog(configuration.logLevel, configuration.logFormat)
    let logger = Logger(label: "nuthatch", factory: { _ in log })
    let settings = LiveConfiguration(
        configuration, from: sources, log: log, logger: logger, notifier: manager)
    let node = NodeService(settings, logger: logger, notifier: manager, sockets: sockets)
    let group = ServiceGroup(
        configuration: .init(services: [.init(service: node)], logger: logger))
    node.requestShutdown.withLock {
        $0 = { [weak node] in
            node?.stops.record()
            Task { await group.triggerGracefulShutdown() }
        }
    }
    let obedience = Task { await obey(signals, node, group) }
    defer { obedience.cancel() }
    do {
        try await group.run()
        return node.ending
    } catch {
        return .failed
    }
}

/// Translates signals into reloads and shutdowns.
private func obey(
    _ signals: UnixSignalsSequence, _ node: NodeService, _ group: ServiceGroup
) async {
    for await signal in signals {
        guard signal != .sighup else {
            node.requestReload()
            continue
        }
        node.stops.record()
        await group.triggerGracefulShutdown()
    }
}
