import Ground
import Logging
import NIOPosix
import Store

extension NodeService {
    /// Reads all settings again, checks them, and has `node` take over what a running node can: all
    /// of it, or nothing when anything is wrong.
    ///
    /// `started` is what the descriptors were for at the start.
    func reload(_ node: NodeCore, _ hub: PeerHub?, _ started: DescriptorBudget) async {
        notifier?.notifyReloading()
        do {
            // A file system may keep its reader waiting, and tasks have few threads.
            let next = try await NIOThreadPool.singleton.runIfActive { [sources] in
                try sources.load()
            }
            let (changed, change) = try configuration.changed(to: next)
            await reconfigure(changed, change, node, started)
            hub?.reconfigure(changed.cluster)
        } catch {
            logReloadFailure(error)
        }
    }

    private func logReloadFailure(_ error: any Error) {
        let faults = error as? ConfigurationErrors
        let why = faults?.first.description ?? "\(error)"
        logger.error(
            "settings not reloaded; all are as they were",
            metadata: [
                "why": "\(why)", "faults": .stringConvertible(faults?.lines.count ?? 1),
            ])
        notifier?.notifyReady(status: "serving; settings not reloaded: \(why)")
    }

    private func reconfigure(
        _ next: Configuration, _ change: ConfigurationChange, _ node: NodeCore,
        _ started: DescriptorBudget
    ) async {
        let budget = DescriptorBudget(
            next, descriptors: started.descriptors, loops: started.loops)
        let hasOtherRules = await node.originals.beginChange(next.sites)
        await node.reconfigure(LoopSettings(next, budget, change))
        if hasOtherRules { node.originals.finishChange(next.sites) }
        node.store.applyLimits(
            limitBytes: next.memoryBytesMax, entriesMax: next.memoryEntriesMax ?? 0)
        node.pressure.setEnabled(next.respondsToMemoryPressure)
        configuration = next
        node.configurationDocument = next.document
        let level = log.logLevel
        log.format = next.logFormat
        log.logLevel = next.logLevel
        // The line gets through if either level lets it; what comes meanwhile, by the new one.
        logReload(
            change, next, budget, to: Logger(label: logger.label) { _ in log.alwaysWriting(level) })
    }

    private func logReload(
        _ change: ConfigurationChange, _ next: Configuration, _ budget: DescriptorBudget,
        to logger: Logger
    ) {
        for warning in next.warnings + budget.warnings { logger.warning("\(warning)") }
        if !change.awaitingRestart.isEmpty {
            logger.warning(
                "settings that a running node cannot take over; they wait for a restart",
                metadata: ["waiting": Self.value(change.awaitingRestart)])
        }
        // A secret or a certificate may be another one in a file of the same name.
        logger.notice(
            change.live.isEmpty
                ? "settings reloaded; none has changed; the files that they name were read anew"
                : "settings reloaded",
            metadata: change.live.isEmpty ? [:] : ["changed": Self.value(change.live)])
        let waiting = change.awaitingRestart.count
        notifier?.notifyReady(
            status: "serving; settings reloaded, \(change.live.count) changed"
                + (waiting == 0 ? "" : ", \(waiting) wait for a restart"))
    }

    private static func value(_ items: [ConfigurationChange.Item]) -> Logger.MetadataValue {
        .array(items.map { .string($0.description) })
    }
}
