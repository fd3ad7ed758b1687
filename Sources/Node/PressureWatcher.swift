import Ground
package import Logging
package import NIOCore
import NIOPosix
package import Store
import Synchronization
package import Telemetry
import Tiers

/// Looks at the memory of containers and machine, and has the memory tier hold what there is room
/// for, and at what connections have left free: runs the decisions of `Tiers.PressureRule` and
/// `Tiers.ConnectionMemoryRule`.
///
/// All of it happens on a thread of its own; a loop only keeps the time.
package final class PressureWatcher: Sendable {
    private let store: MemoryStore
    private let counters: NodeCounters
    private let logger: Logger
    private let files: MemoryFiles
    private let thread = NIOThreadPool(numberOfThreads: 1)
    private let state = Mutex(State())

    private struct State: Sendable {
        var rule = PressureRule()
        var connectionRule = ConnectionMemoryRule()
        var openConnections: @Sendable () -> Int = { 0 }
        var isOn = false
        var timer: Scheduled<Void>?
        var isStopped = false
    }

    /// How often figures are taken while memory is not given up.
    private static let idleLook = Interval.seconds(1)

    package init(
        store: MemoryStore, counters: NodeCounters, logger: Logger,
        files: MemoryFiles = MemoryFiles()
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
        warnOfMisfit(files.read(), isOn: isOn)
        schedule(on: loop, after: look(isFirst: true))
    }

    /// Whether memory is given up from now on; what was given up comes back at once if not.
    package func turn(on isOn: Bool) {
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
                    if haveConnectionsGone { Allocator.returnFreeMemory() }
                    schedule(on: loop, after: look())
                }
            }
        }
    }

    private var haveConnectionsGone: Bool {
        let now = SystemClock.now()
        return state.withLock { state in
            state.connectionRule.looked(now: now, open: state.openConnections())
        }
    }

    /// Looks and acts; gives the time until the next look.
    private func look(isFirst: Bool = false) -> Interval {
        guard state.withLock({ $0.isOn }) else { return rest() }
        let reading = files.read()
        let use = PressureRule.Use(
            configuredBytes: store.configuredBytes, usedBytes: store.account.usedBytes,
            fillingBytes: store.account.fillingBytes)
        let now = SystemClock.now()
        let (wasYielding, isYielding, decision) = state.withLock { state in
            let wasYielding = state.rule.isYielding
            guard state.isOn else {
                state.rule = PressureRule()
                return (wasYielding, false, nil as PressureRule.Decision?)
            }
            let decision = state.rule.looked(now: now, use: use, reading: reading)
            return (wasYielding, state.rule.isYielding, decision)
        }
        store.press(toBytes: isYielding ? decision?.limitBytes : nil)
        if decision?.returnsFreeMemory == true { Allocator.returnFreeMemory() }
        count(reading, decision, isYielding: isYielding)
        if isYielding != wasYielding, !isFirst { log(isYielding: isYielding, reading, use) }
        return decision?.nextLook ?? Self.idleLook
    }

    /// Gives back what was given up; nothing is read while memory is not to be given up.
    private func rest() -> Interval {
        let wasYielding = state.withLock { state in
            defer { state.rule = PressureRule() }
            return state.rule.isYielding
        }
        store.press(toBytes: nil)
        count(MemoryReading(bounds: []), nil, isYielding: false)
        if wasYielding {
            logger.info(
                "memory-limit is held in full again",
                metadata: ["memory_limit": "\(store.configuredBytes)"])
        }
        return Self.idleLook
    }

    // MARK: What operators see

    private func count(
        _ reading: MemoryReading, _ decision: PressureRule.Decision?, isYielding: Bool
    ) {
        counters.set(.memoryYields, to: isYielding ? 1 : 0)
        counters.set(.memoryHeadroomBytes, to: max(0, reading.tightest?.headroomBytes ?? 0))
        counters.set(.memoryStalledPermille, to: reading.stalledPermille ?? 0)
        switch decision?.shrunk {
        case .room: counters.add(.memoryShrinksForRoom)
        case .stall: counters.add(.memoryShrinksForStalls)
        case nil: break
        }
    }

    private func log(isYielding: Bool, _ reading: MemoryReading, _ use: PressureRule.Use) {
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

    private func warnOfMisfit(_ reading: MemoryReading, isOn: Bool) {
        guard !reading.bounds.isEmpty else {
            return logger.notice(
                "memory cannot be watched: neither control groups nor /proc/meminfo can be read")
        }
        guard let misfit = PressureRule.misfit(store.configuredBytes, in: reading) else { return }
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
