import Glibc
import Logging
import NIOCore
import ServiceLifecycle
import Store
import Synchronization
import UnixSignals
import Wire

/// How a node ended.
package enum RunResult: Hashable, Sendable {
    /// It was told to stop, and everything under way was ended.
    case drained
    /// It was told to stop, and something under way was broken off.
    case aborted
    /// It did not start; the log says why.
    case failed
}

/// Sets what holds for the whole process; to be called before there is a second thread.
package func prepareProcess() {
    Allocator.limitArenas(forCores: System.coreCount)
    OpenSSLLibrary.disableExitCleanup()
    // A client that is gone is found by what a write gives; sendfile knows no flag that says so.
    _ = signal(SIGPIPE, SIG_IGN)
}

/// Keeps a SIGHUP from ending the process until ``run(_:from:)`` listens for it.
package func ignoreHangups() {
    _ = signal(SIGHUP, SIG_IGN)
}

/// Runs a node until SIGTERM or SIGINT, then drains it; a second one breaks off what still runs.
///
/// SIGHUP has it load `sources` again and take over what a running node can.
package func run(
    _ configuration: Configuration, from sources: ConfigurationSources
) async -> RunResult {
    // Before anything that takes time: until then a signal is not noticed.
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint, .sighup)
    let manager = ServiceNotifier.fromEnvironment()
    let log = NodeLog(configuration.logLevel, configuration.logFormat)
    let logger = Logger(label: "nuthatch", factory: { _ in log })
    let node = NodeService(
        configuration, from: sources, log: log, logger: logger, manager: manager)
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
