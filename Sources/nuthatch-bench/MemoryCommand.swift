import ArgumentParser
import Ground
import Harness
import Store
import Tiers

/// What an entry really takes in memory, beside what the account counts for it.
struct MemoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "memory",
        abstract: "Resident bytes per entry beside the bytes counted against the limit.")

    @Option(help: "Entries to store.")
    var entries = 100_000

    @Option(help: "Bytes of each body.")
    var bodyBytes = 1_000

    @Option(help: "Percent of the counted bytes that memory pressure leaves at the end.")
    var pressTo = 50

    func validate() throws {
        guard entries > 0, bodyBytes >= 0, 0...100 ~= pressTo else {
            throw ValidationError("no such number")
        }
    }

    func run() throws {
        let store = MemoryStore(.init(limitBytes: .max / 4), hashing: KeyedHash(key0: 1, key1: 2))
        let maker = SyntheticEntries(store: store)
        let before = try ProcessStatistics().residentBytes
        for number in 0..<entries { _ = maker.insert(number, bodyBytes: bodyBytes) }
        let entry = try ProcessStatistics().residentBytes - before
        let counted = store.account.usedBytes
        print("entries: \(store.count) of \(bodyBytes) bytes")
        print("resident bytes per entry: \(entry / entries)")
        print("counted bytes per entry: \(counted / entries)")
        print("chunk bytes per entry: \(BodyLayout.capacity(UInt64(bodyBytes)))")
        try measurePressure(store, residentBefore: before)
    }

    /// What comes back to the kernel when less is held, and how long that takes.
    private func measurePressure(_ store: MemoryStore, residentBefore: Int) throws {
        let counted = store.account.usedBytes
        let full = try ProcessStatistics().residentBytes
        let clock = ContinuousClock()
        let evicting = clock.measure { store.setPressureLimit(bytes: counted / 100 * pressTo) }
        let evicted = try ProcessStatistics().residentBytes
        let returning = clock.measure { Allocator.releaseFreeMemory() }
        let freed = counted - store.account.usedBytes
        print("pressed to \(pressTo) %: \(freed >> 20) MiB evicted in \(evicting)")
        print("resident MiB less by then: \((full - evicted) >> 20)")
        let left = try ProcessStatistics().residentBytes
        print("resident MiB less after \(returning) more: \((full - left) >> 20)")
        print("resident MiB left for the tier: \((left - residentBefore) >> 20)")
    }
}
