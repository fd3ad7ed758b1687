import ArgumentParser
import Foundation
import Ground
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

    func validate() throws {
        guard entries > 0, bodyBytes >= 0 else { throw ValidationError("no such number") }
    }

    func run() throws {
        let store = MemoryStore(.init(limitBytes: .max / 4), hashing: KeyedHash(key0: 1, key1: 2))
        let maker = Entries(store: store)
        let before = try residentBytes()
        for number in 0..<entries { _ = maker.put(number, bodyBytes: bodyBytes) }
        let resident = try residentBytes() - before
        let counted = store.account.usedBytes
        print("entries: \(store.count) of \(bodyBytes) bytes")
        print("resident bytes per entry: \(resident / entries)")
        print("counted bytes per entry: \(counted / entries)")
        print("chunk bytes per entry: \(BodyLayout.capacity(UInt64(bodyBytes)))")
    }

    private func residentBytes() throws -> Int {
        let statm = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
        let pages = statm.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}
