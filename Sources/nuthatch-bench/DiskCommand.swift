import ArgumentParser
import Foundation
import Glibc
import Ground
import Harness
import NIOCore
import Store
import Tiers

/// Measures the disk tier on a real directory: start, memory, writes, and reads compared with a
/// plain reader.
struct DiskCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "disk",
        abstract: "Measures restart, index, write amplification, reclaim and cold reads on disk.")

    @Option(help: "An empty directory for the files; by default a temporary one.")
    var directory: String?

    @Option(help: "Entries for restart and index.")
    var entries = 1_000_000

    @Option(help: "Bytes of each of their bodies.")
    var bodyBytes = 400

    @Option(help: "Seconds of churn.")
    var seconds = 10

    @Option(help: "Only this part: restart, churn or cold.")
    var only: Part?

    /// A part of the measurement.
    enum Part: String, ExpressibleByArgument {
        case restart, churn, cold
    }

    private var root: String {
        directory
            ?? FileManager.default.temporaryDirectory
            .appendingPathComponent("nuthatch-bench-\(getpid())").path
    }

    func run() throws {
        let root = root
        defer { if directory == nil { try? FileManager.default.removeItem(atPath: root) } }
        if only ?? .restart == .restart { try measureRestart(root + "/many") }
        if only ?? .churn == .churn { try measureChurn(root + "/churn") }
        guard only ?? .cold == .cold else { return }
        for bytes in [10_000, 1_000_000] { try measureColdReads(root + "/cold-\(bytes)", bytes) }
    }

    // MARK: Restart

    private func measureRestart(_ root: String) throws {
        let limit = UInt64(entries) * UInt64(bodyBytes + 900) + 1 << 30
        try fill(root, limit)
        let before = try ProcessStatistics().residentBytes
        let start = nanoseconds()
        let again = try BenchDiskLog(below: root, limitBytes: limit)
        let opened = nanoseconds()
        let isThere = read(again, entries / 2)
        let first = nanoseconds()
        let found = again.log.view.shards.count
        print("restart, \(found) of \(entries) entries:")
        print("  open \(ms(opened - start)), first hit \(ms(first - start)) (found: \(isThere))")
        let index = Double(again.log.view.shards.allocatedBytes) / Double(found)
        let entry = Double(try ProcessStatistics().residentBytes - before) / Double(found)
        print("  index \(hundredths(index)) bytes an entry; resident memory \(hundredths(entry))")
        print("  " + again.openNotes)
    }

    private func fill(_ root: String, _ limit: UInt64) throws {
        let log = try BenchDiskLog(below: root, limitBytes: limit)
        let start = nanoseconds()
        for number in 0..<entries { try log.store(number, bodyBytes: bodyBytes) }
        let took = nanoseconds() - start
        print("write, records of some \(bodyBytes + 500) bytes: \(rate(entries, took)) records/s")
        try log.log.close()
    }

    // MARK: Churn

    /// Requests entries with the popularity rank^-0.8 for twenty times the capacity, while another
    /// thread looks up entries.
    private func measureChurn(_ root: String) throws {
        let limit: UInt64 = 256 << 20
        let log = try BenchDiskLog(below: root, limitBytes: limit)
        let keys = 100_000
        let size = { (number: Int) in 5_000 + number &* 7919 % 90_000 }
        var dice = SplitMix64(seed: 11)
        for _ in 0..<20_000 { try request(log, BenchDiskLog.zipf(keys, &dice), size) }
        let still = Latencies.measureLookups(log.log.view, keys, times: 200_000)
        let end = nanoseconds() + UInt64(seconds) * 1_000_000_000
        let (written, admitted) = (log.figures[.writtenBytes], log.figures[.admittedBytes])
        let reclaims = log.figures[.reclaims]
        var misses = 0
        var requests = 0
        let view = log.log.view
        let looker = Sampler { Latencies.measureLookups(view, keys, until: $0) }
        while nanoseconds() < end {
            requests += 1
            if try request(log, BenchDiskLog.zipf(keys, &dice), size) { misses += 1 }
        }
        let busy = looker.stop()
        print("churn for \(seconds) s, \(requests) requests, \(misses) misses:")
        let added = log.figures[.admittedBytes] - admitted
        let all = log.figures[.writtenBytes] - written
        print(
            "  written by admitted bytes \(hundredths(Double(all) / Double(max(1, added)))), "
                + "\(added >> 20) MiB admitted, \(log.figures[.reclaims] - reclaims) reclaims")
        print("  hit while nothing is written: \(still.text)")
        print("  hit while records are written and segments reclaimed: \(busy.text)")
    }

    /// Requests an entry; returns true for a miss.
    @discardableResult
    private func request(_ log: BenchDiskLog, _ number: Int, _ size: (Int) -> Int) throws -> Bool {
        let digest = BenchDiskLog.name(number).digest
        let second = UInt32(clamping: BenchDiskLog.now() / 1000)
        guard log.log.view.shards.find(digest) == nil else {
            log.log.touch(digest, count: 1, at: second)
            return false
        }
        try log.store(number, bodyBytes: size(number))
        return true
    }

    // MARK: Cold reads

    private func measureColdReads(_ root: String, _ bytes: Int) throws {
        let count = min(20_000, (2 << 30) / bytes)
        let log = try BenchDiskLog(
            below: root, limitBytes: UInt64(count) * UInt64(bytes + 2_000) * 2 + 1 << 30)
        for number in 0..<count { try log.store(number, bodyBytes: bytes) }
        try log.log.close()
        let places = (0..<count).compactMap { number in
            log.log.view.shards.find(BenchDiskLog.name(number).digest)
        }.shuffled()
        let wanted = places.prefix(max(200, (512 << 20) / bytes))
        var (plain, logged): ([Double], [Double]) = ([], [])
        for _ in 0..<3 {
            try log.dropPageCache()
            plain.append(try readPlain(log, wanted))
            try log.dropPageCache()
            logged.append(readThroughLog(log, wanted.count, of: count))
        }
        let ratio = hundredths(logged.median / plain.median)
        print(
            "cold random reads of \(bytes) bytes: plain \(Int(plain.median)) MB/s, "
                + "log \(Int(logged.median)) MB/s, \(ratio) of plain")
    }

    /// Returns the megabytes per second of plain reads of whole records in place.
    private func readPlain(_ log: BenchDiskLog, _ places: ArraySlice<DiskEntry>) throws -> Double {
        let start = nanoseconds()
        var sum = 0
        for place in places {
            guard let use = log.log.view.slots[Int(place.location.segment)].current else {
                continue
            }
            let unit = DiskEntry.unitBytes
            sum += try use.file.read(
                Int(place.lengthUnits) * unit, at: UInt64(place.location.offsetUnits) * UInt64(unit)
            ).count
        }
        return Double(sum) * 1000 / Double(nanoseconds() - start)
    }

    /// Returns the megabytes per second of bodies that are found by name, checked and divided for
    /// memory.
    private func readThroughLog(_ log: BenchDiskLog, _ wanted: Int, of count: Int) -> Double {
        let numbers = (0..<count).shuffled().prefix(wanted)
        let start = nanoseconds()
        var sum = 0
        for number in numbers {
            guard
                var reading = log.log.view.read(
                    BenchDiskLog.name(number), key: BenchDiskLog.key(number)),
                let chunks = log.log.view.readBody(&reading)
            else { continue }
            sum += chunks.reduce(0) { $0 + $1.readableBytes }
        }
        return Double(sum) * 1000 / Double(nanoseconds() - start)
    }

    // MARK: Helpers

    private func read(_ log: BenchDiskLog, _ number: Int) -> Bool {
        guard
            var reading = log.log.view.read(
                BenchDiskLog.name(number), key: BenchDiskLog.key(number))
        else { return false }
        return log.log.view.readBody(&reading) != nil
    }

    private func ms(_ nanoseconds: UInt64) -> String { "\(nanoseconds / 1_000_000) ms" }
    private func rate(_ count: Int, _ nanoseconds: UInt64) -> Int {
        Int(Double(count) * 1e9 / Double(max(1, nanoseconds)))
    }
}
