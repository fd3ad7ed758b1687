import Front
import Logging
import NIOPosix
import NodeConfiguration
import Peering
import Store
import Synchronization

/// The settings in force and their reloads.
final class LiveConfiguration: Sendable {
    private let current: Mutex<Configuration>
    /// The sources from which settings are loaded and reloaded.
    private let sources: ConfigurationSources
    /// The handler of ``logger``, whose level and format change at a reload.
    let log: NodeLog
    private let logger: Logger
    private let notifier: ServiceNotifier?
    /// The stream of reload requests; requests that arrive during a reload are merged into one.
    let requests: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)

    /// Creates the settings `configuration`, which were loaded from `sources`.
    init(
        _ configuration: Configuration, from sources: ConfigurationSources, log: NodeLog,
        logger: Logger, notifier: ServiceNotifier?
    ) {
        current = Mutex(configuration)
        self.sources = sources
        self.log = log
        self.logger = logger
        self.notifier = notifier
        // One of several signals in a row is enough: the file is read after the last of them.
        requests = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// The current settings.
    var value: Configuration { current.withLock { $0 } }

    /// Reloads and checks all settings and has `node` apply those that a running node can; if
    /// anything is wrong, nothing changes.
    ///
    /// - Parameters:
    ///   - node: the running node.
    ///   - hub: the node's membership; `nil` if it is in no cluster.
    ///   - started: the descriptor budget at the start.
    func reload(_ node: NodeCore, _ hub: PeerHub?, _ started: DescriptorBudget) async {
        notifier?.notifyReloading()
        do {
            // A file system may block its reader, and the threads of tasks are few.
            let next = try await NIOThreadPool.singleton.runIfActive { [sources] in
                try sources.load()
            }
            let (changed, change) = try value.changed(to: next)
            await reconfigure(changed, change, node, started)
            hub?.reconfigure(changed)
        } catch {
            logReloadFailure(error)
        }
    }

    /// Logs the faults of a failed reload and notifies the service manager.
    private func logReloadFailure(_ error: any Error) {
        let faults = error as? ConfigurationErrors
        let why = faults?.first.description ?? "\(error)"
        logger.error(
            "settings not reloaded; the previous ones remain in force",
            metadata: [
                "why": "\(why)", "faults": .stringConvertible(faults?.lines.count ?? 1),
            ])
        notifier?.notifyReady(status: "serving; settings not reloaded: \(why)")
    }

    /// Applies a checked configuration to the node.
    private func reconfigure(
        _ next: Configuration, _ change: ConfigurationChange, _ node: NodeCore,
        _ started: DescriptorBudget
    ) async {
        let budget = DescriptorBudget(
            next, descriptors: started.descriptors, loops: started.loops)
        let hasOtherRules = await node.taggingRules.beginChange(next.sites)
        await node.reconfigure(LoopSettings(next, budget, change))
        if hasOtherRules { node.taggingRules.finishChange(next.sites) }
        node.store.applyLimits(
            limitBytes: next.memoryLimit, entriesMax: next.memoryEntries)
        node.pressure.setEnabled(next.memoryPressure)
        current.withLock { $0 = next }
        node.configurationDocument = next.document
        node.monitor.certificates = next.tlsMaterial.certificates
        let level = log.logLevel
        log.format = next.logFormat
        log.logLevel = next.logLevel
        // The line is written if either level admits it; later lines follow the new level.
        logReload(
            change, next, budget, to: Logger(label: logger.label) { _ in log.alwaysWriting(level) })
    }

    /// Logs the outcome of a reload and notifies the service manager.
    private func logReload(
        _ change: ConfigurationChange, _ next: Configuration, _ budget: DescriptorBudget,
        to logger: Logger
    ) {
        for warning in next.warnings + budget.warnings { logger.warning("\(warning)") }
        if !change.awaitingRestart.isEmpty {
            logger.warning(
                "some changed settings take effect only after a restart",
                metadata: ["waiting": Self.value(change.awaitingRestart)])
        }
        // A file may hold another secret or certificate under the same name.
        logger.notice(
            change.live.isEmpty
                ? "settings reloaded; none has changed; referenced files were reread"
                : "settings reloaded",
            metadata: change.live.isEmpty ? [:] : ["changed": Self.value(change.live)])
        let waiting = change.awaitingRestart.count
        notifier?.notifyReady(
            status: "serving; settings reloaded, \(change.live.count) changed"
                + (waiting == 0 ? "" : ", \(waiting) wait for a restart"))
    }

    /// Returns changes as a value of log metadata.
    private static func value(_ items: [ConfigurationChange.Item]) -> Logger.MetadataValue {
        .array(items.map { .string($0.description) })
    }
}
