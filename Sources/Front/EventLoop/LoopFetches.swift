import Ground
import NIOCore
import Platform
import Serving

/// The fetches that run on one event loop, and the readers on that loop that wait for fetches of
/// any loop.
///
/// Confined to the loop, except for ``perform(on:_:)`` and ``scheduleWake(_:)``.
final class LoopFetches: @unchecked Sendable {
    private let loop: any EventLoop
    /// Drivers of the fetches in progress, by their ``ActiveFetch``.
    private var drivers: [ObjectIdentifier: LookupDriver] = [:]
    /// Timer of the drivers' deadlines.
    private let deadlineTimer: DeadlineTimer
    /// Responses and peer handlers that wait for a fetch, by fetch.
    private var waitingReaders: [ObjectIdentifier: [any FetchReader]] = [:]
    /// Fetches whose readers are woken after the current events.
    private var wokenFetches: [ActiveFetch] = []

    /// Creates the empty table of `loop`.
    init(on loop: any EventLoop) {
        self.loop = loop
        deadlineTimer = DeadlineTimer(on: loop)
    }

    /// Enables the deadlines.
    func start() {
        deadlineTimer.start { [unowned self] in deadlinesReached($0) }
    }

    /// Disables the deadlines.
    func stop() {
        deadlineTimer.stop()
    }

    // MARK: Drivers

    /// Starts a fetch, whose driver is retained until ``ended(_:)``.
    ///
    /// - Parameters:
    ///   - driver: the driver of the fetch, on this loop.
    ///   - readsDisk: true if the disk is read before the origin or peers are contacted.
    func start(_ driver: LookupDriver, readsDisk: Bool) {
        drivers[ObjectIdentifier(driver.fetch)] = driver
        driver.handle { $0.started(readsDisk: readsDisk, effects: &$1) }
    }

    /// Forgets a fetch that has ended.
    func ended(_ driver: LookupDriver) {
        drivers[ObjectIdentifier(driver.fetch)] = nil
    }

    /// Schedules the timer for a new or changed deadline of `driver`.
    func scheduleDeadline(of driver: LookupDriver, now: Instant) {
        guard let deadline = driver.deadline else { return }
        deadlineTimer.schedule(by: deadline, now: now)
    }

    /// Processes the deadlines reached; returns the next one.
    private func deadlinesReached(_ now: Instant) -> Instant? {
        for driver in Array(drivers.values) {
            if let deadline = driver.deadline, deadline <= now { driver.deadlineReached(now) }
        }
        return drivers.values.lazy.compactMap(\.deadline).min()
    }

    /// Applies the time limits on readers to all fetches; `elapsed` is the time since the last
    /// call.
    func ticked(_ elapsed: Interval) {
        for driver in Array(drivers.values) {
            driver.fetch.ticked(elapsed, isContended: driver.isContended)
        }
    }

    /// Runs `message` on the loop with the driver of `run`, unless the fetch has ended; from any
    /// loop.
    func perform(on run: ActiveFetch, _ message: @escaping @Sendable (LookupDriver) -> Void) {
        loop.execute { [self] in
            guard let driver = drivers[ObjectIdentifier(run)] else { return }
            message(driver)
        }
    }

    // MARK: Readers

    /// Registers `reader` to be woken once, at the next event of `run`.
    func addReader(_ reader: any FetchReader, of run: ActiveFetch) {
        waitingReaders[ObjectIdentifier(run), default: []].append(reader)
    }

    /// Wakes the readers that wait here for `run`, soon; from any loop.
    ///
    /// All fetches woken in one turn of this loop share one task.
    func scheduleWake(_ run: ActiveFetch) {
        guard loop.inEventLoop else { return loop.execute { [self] in wakeReaders(of: run) } }
        wokenFetches.append(run)
        guard wokenFetches.count == 1 else { return }
        loop.assumeIsolated().execute { [self] in
            for run in wokenFetches.takeAll() { wakeReaders(of: run) }
        }
    }

    /// Wakes the readers that wait here for `run`.
    private func wakeReaders(of run: ActiveFetch) {
        guard let readers = waitingReaders.removeValue(forKey: ObjectIdentifier(run)) else {
            return
        }
        for reader in readers { reader.fetchAdvanced(by: run) }
    }
}
