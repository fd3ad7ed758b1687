import Ground
package import Logging
package import NIOCore
import NIOPosix
package import Store
import Synchronization
package import Telemetry
import Tiers

/// Looks at the memory of containers and machine, and has the memory tier hold what there is room
/// for, and at what connections have left free: runs the decisions of `Tiers.MemoryPressurePolicy`
/// and `Tiers.ConnectionMemoryTrimPolicy`.
///
/// All of it happens on a thread of its own; a loop only keeps the time.
package final class MemoryPressureMonitor: Sendable {
    private let store: MemoryStore
    private let counters: NodeCounters
    private let logger: Logger
    private let files: KernelMemoryFiles
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let state = Mutex(State())

    private struct State: Sendable {
        var rule = MemoryPressurePolicy()
        var connectionRule = ConnectionMemoryTrimPolicy()
        var openConnections: @Sendable () -> Int = { 0 }
        var isOn = false
        var timer: Scheduled<Void>?
        var isStopped = false
    }

    /// How often figures are taken while memory is not given up.
    private static let idleSampleInterval = Interval.seconds(1)

    package init(
        store: MemoryStore, counters: NodeCounters, logger: Logger,
        files: KernelMemoryFiles = KernelMemoryFiles()
    ) {
        self.store = store
        self.counters = counters
        self.logger = logger
        self.files = files
    }

    /// Looks once, on the caller's thread, before anything is held; then again and again until
    /// ``stop()``.
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

    /// Whether memory is given up from now on; what was given up comes back at once if not.
    package func setEnabled(_ isOn: Bool) {
        state.withLock { $0.isOn = isOn }
    }

    /// Returns when the thread has ended.
    package func stop() async {
        let timer = state.withLock { state in
            state.isStopped = true
            return state.timer.take()
        }
        timer?.cancel()
        try? await thread.shutdownGracefully()
    }

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

    private var shouldReturnFreeMemory: Bool {
        let now = SystemClock.now()
        return state.withLock { state in
            state.connectionRule.evaluate(now: now, openConnections: state.openConnections())
        }
    }

    /// Looks and acts; gives the time until the next look.
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

    /// Gives back what was given up; nothing is read while memory is not to be given up.
    private func restoreLimit() -> Interval {
        let wasYielding = state.withLock { state in
            defer { state.rule = MemoryPressurePolicy() }
            return state.rule.isLimitReduced
        }
        store.setPressureLimit(bytes: nil)
        count(SystemMemorySample(bounds: []), nil, isYielding: false)
        if wasYielding {
            logger.info(
                "memory-limit is held in full again",
                metadata: ["memory_limit": "\(store.configuredBytes)"])
        }
        return Self.idleSampleInterval
    }

    // MARK: What operators see

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

    private func log(
        isYielding: Bool, _ reading: SystemMemorySample, _ use: MemoryPressurePolicy.Usage
    ) {
        guard isYielding else {
            return logger.info(
                "memory-limit is held in full again",
                metadata: ["memory_limit": "\(use.configuredBytes)"])
        }
        logger.warning(
            "memory is short: less than memory-limit is held until there is room again",
            metadata: [
                "memory_limit": "\(use.configuredBytes)",
                "held": "\(store.account.limitBytes)",
                "short": "\(reading.tightest?.name ?? "nothing")",
                "headroom": "\(reading.tightest?.headroomBytes ?? 0)",
                "stalled_permille": "\(reading.stalledPermille ?? 0)",
            ])
    }

    private func warnIfLimitTooLarge(_ reading: SystemMemorySample, isOn: Bool) {
        guard !reading.bounds.isEmpty else {
            return logger.notice(
                "memory cannot be watched: neither control groups nor /proc/meminfo can be read")
        }
        guard
            let misfit = MemoryPressurePolicy.insufficientBound(store.configuredBytes, in: reading)
        else { return }
        let consequence =
            isOn
            ? "less is held"
            : "and as memory-pressure is off, the kernel may kill the process"
        logger.warning(
            "memory-limit does not fit beside the process: \(consequence)",
            metadata: [
                "memory_limit": "\(store.configuredBytes)",
                "fits": "\(misfit.fittingBytes)", "limit": "\(misfit.bound.limitBytes)",
                "advice": "lower memory-limit, or raise the limit of the \(misfit.bound.name)",
            ])
    }
}
