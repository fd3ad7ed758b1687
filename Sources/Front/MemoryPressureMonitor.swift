import Ground
package import Logging
package import NIOCore
import NIOPosix
import Platform
package import Store
import Synchronization
package import Telemetry
import Tiers

/// Monitor that samples the memory of the control groups and the machine and lowers or restores the
/// memory tier's limit accordingly.
///
/// It applies the decisions of `Tiers.MemoryPressurePolicy`, and those of
/// `Tiers.ConnectionMemoryTrimPolicy` on returning memory that closed connections have left free.
/// All work happens on its own thread; an event loop only runs the timer.
package final class MemoryPressureMonitor: Sendable {
    private let store: MemoryStore
    private let counters: NodeCounters
    private let logger: Logger
    private let files: KernelMemoryFiles
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let state = Mutex(State())

    /// The state under the lock.
    private struct State: Sendable {
        var rule = MemoryPressurePolicy()
        var connectionRule = ConnectionMemoryTrimPolicy()
        /// The number of open client connections; called on any thread.
        var openConnections: @Sendable () -> Int = { 0 }
        /// False if the limit is never lowered, whatever the samples are.
        var isOn = false
        var timer: Scheduled<Void>?
        var isStopped = false
    }

    /// Time between two samples while the limit is not lowered.
    private static let idleSampleInterval = Interval.seconds(1)

    /// Creates a monitor for `store`; call ``start(on:isOn:openConnections:)`` to run it.
    ///
    /// - Parameters:
    ///   - store: the memory tier whose limit the monitor sets.
    ///   - counters: the counters that receive the gauges.
    ///   - logger: the log for changes and misfits.
    ///   - files: the kernel files to sample.
    package init(
        store: MemoryStore, counters: NodeCounters, logger: Logger,
        files: KernelMemoryFiles = KernelMemoryFiles()
    ) {
        self.store = store
        self.counters = counters
        self.logger = logger
        self.files = files
    }

    /// Samples once on the calling thread, before anything is cached, and then samples
    /// until ``stop()``.
    ///
    /// - Parameters:
    ///   - loop: the event loop that runs the timer.
    ///   - isOn: false to keep the configured limit whatever the samples are.
    ///   - openConnections: returns the number of open client connections; called on the monitor's
    ///     thread.
    package func start(
        on loop: any EventLoop, isOn: Bool, openConnections: @escaping @Sendable () -> Int
    ) {
        thread.start()
        state.withLock { state in
            state.isOn = isOn
            state.openConnections = openConnections
        }
        warnIfLimitTooLarge(files.read(), isOn: isOn)
        schedule(on: loop, after: sample(isFirst: true))
    }

    /// Turns the response to memory pressure on or off; when it is off, the next sample restores
    /// the limit in full.
    package func setEnabled(_ isOn: Bool) {
        state.withLock { $0.isOn = isOn }
    }

    /// Stops sampling and returns when the thread has ended.
    package func stop() async {
        let timer = state.withLock { state in
            state.isStopped = true
            return state.timer.take()
        }
        timer?.cancel()
        try? await thread.shutdownGracefully()
    }

    /// Schedules the next sample.
    private func schedule(on loop: any EventLoop, after interval: Interval) {
        state.withLock { state in
            guard !state.isStopped else { return }
            state.timer = loop.scheduleTask(in: .nanoseconds(interval.nanoseconds)) { [self] in
                thread.submit { [self] work in
                    guard work == .active else { return }
                    if shouldReturnFreeMemory { Allocator.releaseFreeMemory() }
                    schedule(on: loop, after: sample())
                }
            }
        }
    }

    /// True if memory that closed connections have left free is to be returned to the kernel now;
    /// each access is one evaluation of the rule.
    private var shouldReturnFreeMemory: Bool {
        let now = SystemClock.now()
        return state.withLock { state in
            state.connectionRule.evaluate(now: now, openConnections: state.openConnections())
        }
    }

    /// Samples, applies the decision, and returns the time until the next sample.
    private func sample(isFirst: Bool = false) -> Interval {
        guard state.withLock({ $0.isOn }) else { return restoreLimit() }
        let reading = files.read()
        let use = MemoryPressurePolicy.Usage(
            configuredBytes: store.configuredBytes, usedBytes: store.account.usedBytes,
            fetchBytes: store.account.fetchBytes)
        let now = SystemClock.now()
        let (wasYielding, isYielding, decision) = state.withLock { state in
            let wasYielding = state.rule.isLimitReduced
            guard state.isOn else {
                state.rule = MemoryPressurePolicy()
                return (wasYielding, false, nil as MemoryPressurePolicy.Decision?)
            }
            let decision = state.rule.evaluate(now: now, usage: use, sample: reading)
            return (wasYielding, state.rule.isLimitReduced, decision)
        }
        store.setPressureLimit(bytes: isYielding ? decision?.limitBytes : nil)
        if decision?.releasesFreeMemory == true { Allocator.releaseFreeMemory() }
        count(reading, decision, isYielding: isYielding)
        if isYielding != wasYielding, !isFirst { log(isYielding: isYielding, reading, use) }
        return decision?.nextEvaluationDelay ?? Self.idleSampleInterval
    }

    /// Restores the configured limit without reading samples, and returns the time until the next
    /// check.
    private func restoreLimit() -> Interval {
        let wasYielding = state.withLock { state in
            defer { state.rule = MemoryPressurePolicy() }
            return state.rule.isLimitReduced
        }
        store.setPressureLimit(bytes: nil)
        count(SystemMemorySample(bounds: []), nil, isYielding: false)
        if wasYielding {
            logger.info(
                "memory-limit applies in full again",
                metadata: ["memory_limit": "\(store.configuredBytes)"])
        }
        return Self.idleSampleInterval
    }

    // MARK: Metrics and log

    /// Updates the gauges and counters of memory pressure.
    private func count(
        _ reading: SystemMemorySample, _ decision: MemoryPressurePolicy.Decision?, isYielding: Bool
    ) {
        counters.set(.memoryUnderPressure, to: isYielding ? 1 : 0)
        counters.set(.memoryHeadroomBytes, to: max(0, reading.tightest?.headroomBytes ?? 0))
        counters.set(.memoryStalledPermille, to: reading.stalledPermille ?? 0)
        switch decision?.reductionReason {
        case .lowHeadroom: counters.add(.memoryShrinksForHeadroom)
        case .stall: counters.add(.memoryShrinksForStalls)
        case nil: break
        }
    }

    /// Logs that the limit was lowered or restored.
    private func log(
        isYielding: Bool, _ reading: SystemMemorySample, _ use: MemoryPressurePolicy.Usage
    ) {
        guard isYielding else {
            return logger.info(
                "memory-limit applies in full again",
                metadata: ["memory_limit": "\(use.configuredBytes)"])
        }
        logger.warning(
            "memory is short; memory-limit is reduced until memory is available again",
            metadata: [
                "memory_limit": "\(use.configuredBytes)",
                "held": "\(store.account.limitBytes)",
                "short": "\(reading.tightest?.name ?? "nothing")",
                "headroom": "\(reading.tightest?.headroomBytes ?? 0)",
                "stalled_permille": "\(reading.stalledPermille ?? 0)",
            ])
    }

    /// Logs at the start if the configured limit does not fit into the available memory.
    private func warnIfLimitTooLarge(_ reading: SystemMemorySample, isOn: Bool) {
        guard !reading.bounds.isEmpty else {
            return logger.notice(
                "cannot monitor memory: neither control groups nor /proc/meminfo can be read")
        }
        guard
            let misfit = MemoryPressurePolicy.insufficientBound(store.configuredBytes, in: reading)
        else { return }
        let consequence =
            isOn
            ? "it is reduced"
            : "memory-pressure is off, so the kernel may kill the process"
        logger.warning(
            "memory-limit does not fit beside the process: \(consequence)",
            metadata: [
                "memory_limit": "\(store.configuredBytes)",
                "fits": "\(misfit.fittingBytes)", "limit": "\(misfit.bound.limitBytes)",
                "advice": "lower memory-limit, or raise the limit of the \(misfit.bound.name)",
            ])
    }
}
