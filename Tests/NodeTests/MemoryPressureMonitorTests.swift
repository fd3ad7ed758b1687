import Foundation
import Front
import Ground
import Logging
import NIOCore
import NIOPosix
import Store
import Synchronization
import Telemetry
import Testing

/// A handler that keeps lines as `level message`.
private struct LogLines: LogHandler {
    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
    }

    var logLevel = Logger.Level.trace
    var metadata = Logger.Metadata()
    private let lines = Lines()

    var all: [String] { lines.all.withLock { $0 } }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        lines.all.withLock { $0.append("\(event.level) \(event.message)") }
    }
}

/// A node's memory tier in a container whose files the test writes.
private struct Container {
    let store: MemoryStore
    let counters = NodeCounters()
    let log = LogLines()
    let watcher: MemoryPressureMonitor
    private let root = FileManager.default.temporaryDirectory
        .appendingPathComponent("nuthatch-\(UUID().uuidString)")

    var rootPath: String { root.path }

    /// Creates a container of `limitMiB` with a `memory-limit` of 128 MiB.
    init(limitMiB: Int, workingMiB: Int) throws {
        store = MemoryStore(.init(limitBytes: 128 << 20), hashing: KeyedHash(key0: 1, key1: 2))
        let log = log
        watcher = MemoryPressureMonitor(
            store: store, counters: counters, logger: Logger(label: "test") { _ in log },
            files: KernelMemoryFiles(proc: root.path + "/proc", groups: root.path + "/groups"))
        try write("proc/self/cgroup", "0::/\n")
        try write("groups/memory.max", "\(limitMiB << 20)\n")
        try write("groups/memory.stat", "inactive_file 0\nactive_file 0\n")
        try take(workingMiB)
    }

    /// Sets the container's memory usage.
    func take(_ mebibytes: Int) throws {
        try write("groups/memory.current", "\(mebibytes << 20)\n")
    }

    func start(isOn: Bool = true) {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        watcher.start(on: loop, isOn: isOn) { 0 }
    }

    func stop() async throws {
        await watcher.stop()
        try FileManager.default.removeItem(at: root)
    }

    /// True once `isSo` is, within half a minute.
    func reached(_ isSo: () -> Bool) async throws -> Bool {
        for _ in 0..<3_000 {
            if isSo() { return true }
            let loop = MultiThreadedEventLoopGroup.singleton.next()
            try await loop.scheduleTask(in: .milliseconds(10)) {}.futureResult.get()
        }
        return false
    }

    func figure(_ metric: Metric) -> UInt64 { MetricsSnapshot(loops: [], node: counters)[metric] }

    private func write(_ path: String, _ text: String) throws {
        let url = root.appendingPathComponent(path)
        try FileManager.default.createDirectory(
            at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url, options: .atomic)
    }
}

@Suite("Watching the memory of a container")
struct MemoryPressureMonitorTests {
    @Test("Under pressure the limit falls with one log line, and turning it off restores the limit")
    func shrinks() async throws {
        let container = try Container(limitMiB: 512, workingMiB: 100)
        let store = container.store
        container.start()
        #expect(store.account.limitBytes == 128 << 20)
        #expect(container.log.all == [])
        #expect(store.reserve(100 << 20))
        try container.take(500)
        let isHeld = try await container.reached {
            store.account.limitBytes < 100 << 20 && container.figure(.memoryUnderPressure) == 1
        }
        #expect(isHeld)
        try container.take(510)
        let isHeldFurther = try await container.reached {
            container.figure(.memoryHeadroomBytes) == 2 << 20
        }
        #expect(isHeldFurther)
        #expect(container.figure(.memoryShrinksForHeadroom) >= 1)
        let warnings = container.log.all
        #expect(warnings.count == 1 && warnings[0].hasPrefix("warning memory is short"))
        container.watcher.setEnabled(false)
        let isHad = try await container.reached { store.account.limitBytes == 128 << 20 }
        #expect(isHad)
        store.account.release(100 << 20)
        try await container.stop()
        #expect(container.log.all.count == 2)
    }

    @Test("A limit that does not fit is logged at start, and reduced")
    func misfit() async throws {
        let container = try Container(limitMiB: 128, workingMiB: 15)
        container.start()
        #expect(container.store.account.limitBytes < 100 << 20)
        let lines = container.log.all
        #expect(lines.count == 1 && lines[0].contains("does not fit beside the process"))
        try await container.stop()
    }

    @Test("When turned off, nothing is reduced, but a limit that does not fit is logged")
    func turnedOff() async throws {
        let container = try Container(limitMiB: 128, workingMiB: 127)
        container.start(isOn: false)
        #expect(container.store.account.limitBytes == 128 << 20)
        #expect(container.log.all.count == 1 && container.log.all[0].contains("may kill"))
        #expect(container.figure(.memoryHeadroomBytes) == 0)
        container.watcher.setEnabled(true)
        let isHeld = try await container.reached {
            container.store.account.limitBytes < 100 << 20
        }
        #expect(isHeld)
        try await container.stop()
    }

    @Test("Without readable files that is logged, and the whole limit applies")
    func nothingToRead() async throws {
        let container = try Container(limitMiB: 128, workingMiB: 127)
        try FileManager.default.removeItem(atPath: container.rootPath)
        container.start()
        #expect(container.store.account.limitBytes == 128 << 20)
        #expect(container.log.all.count == 1 && container.log.all[0].hasPrefix("notice"))
        await container.watcher.stop()
    }
}
