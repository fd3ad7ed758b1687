import ArgumentParser
import Ground
import Harness
import Tiers

/// Measures the costs of invalidations of many entries: to apply, to store, and per look-up.
struct MarksCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "marks",
        abstract: "Measures lookup times and memory while prefixes and tags are invalidated.")

    @Option(help: "Prefixes that are invalidated.")
    var prefixes = 100_000

    @Option(help: "Distinct tags that are invalidated.")
    var tags = 1_000_000

    @Option(help: "Look-ups that are timed.")
    var lookUps = 1_000_000

    func validate() throws {
        guard prefixes > 0, tags > 0, lookUps > 0 else { throw ValidationError("no such number") }
    }

    func run() throws {
        var table = MarkTable()
        try measureLookups(in: table, "no mark")
        let applying = ContinuousClock().measure {
            for number in 0..<prefixes {
                table.apply(mark(Self.prefix(number), UInt64(number) + 1))
            }
        }
        print("prefix applied in: \(nanoseconds(applying, of: prefixes)) ns")
        try measureLookups(in: table, "\(prefixes) prefixes")
        let before = try ProcessStatistics().residentBytes
        for number in 0..<tags {
            table.apply(mark(.tag(Array("product-\(number)".utf8)), UInt64(number) + 1))
        }
        print("bytes of memory per tag: \(try (ProcessStatistics().residentBytes - before) / tags)")
        try measureLookups(in: table, "\(prefixes) prefixes and \(tags) tags")
    }

    private func nanoseconds(_ time: Duration, of count: Int) -> Int {
        Int(time / .nanoseconds(1)) / count
    }

    private func mark(_ target: PurgeTarget, _ count: UInt64) -> InvalidationMark {
        InvalidationMark(
            target, isSoft: false, version: InvalidationVersion(epoch: 1, count: count))
    }

    private static func prefix(_ number: Int) -> PurgeTarget {
        .prefix(
            host: Array("images-\(number % 100).example.com".utf8),
            path: Array("/shop/\(number)".utf8))
    }

    /// Measures look-ups of entries that are older than every mark, have four tags, and lie four
    /// segments deep.
    private func measureLookups(in table: MarkTable, _ what: String) throws {
        let count = 10_000
        let entries = (0..<count).map { number in
            (
                key: Array(
                    "https://images-\(number % 100).example.com/stock/\(number)/large/1.jpg?w=640"
                        .utf8),
                tags: (0..<4).map { Array("article-\(number)-\($0)".utf8) }
            )
        }
        var found = 0
        let time = ContinuousClock().measure {
            for number in 0..<lookUps {
                let entry = entries[number % count]
                let effect = table.effect(
                    on: entry.key, tags: entry.tags, version: .zero)
                if effect != nil { found += 1 }
            }
        }
        guard found == 0 else { throw ValidationError("\(found) are covered that no mark covers") }
        print("look-up with \(what): \(nanoseconds(time, of: lookUps)) ns")
    }
}
