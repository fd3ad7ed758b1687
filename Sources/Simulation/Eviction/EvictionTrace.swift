internal import Foundation
internal import Ground

/// A trace prepared for replay, with keys numbered from 0 in order of appearance.
///
/// Each key has one size, the largest in the trace, so that every policy has the same footprint.
package struct EvictionTrace: Sendable {
    /// The name, for reports.
    package let name: String
    /// The key of each request.
    package private(set) var requests: [UInt32] = []
    /// The size of each key in bytes.
    package private(set) var sizes: [Int] = []
    /// The numbers of the keys.
    private var numbers: [UInt64: UInt32] = [:]

    /// Creates an empty trace.
    package init(name: String) {
        self.name = name
    }

    /// Appends a request for `key`, an object of `size` bytes.
    package mutating func append(key: UInt64, size: Int) {
        guard let number = numbers[key] else {
            let number = UInt32(sizes.count)
            numbers[key] = number
            sizes.append(size)
            requests.append(number)
            return
        }
        sizes[Int(number)] = max(sizes[Int(number)], size)
        requests.append(number)
    }

    /// The sum of the sizes of all distinct keys in bytes.
    package var footprintBytes: Int {
        sizes.reduce(0, +)
    }

    /// Returns `percent` of the footprint in bytes, rounded down.
    package func capacityBytes(percent: Double) -> Int {
        Int(Double(footprintBytes) * percent / 100)
    }
}

/// Synthetic request traces with what recorded ones lack: objects of up to 64 MiB.
///
/// Popularity follows Zipf's law; sizes are log-normal with a Pareto tail. The trace is the same
/// every time, except for the last bits of `exp` and `log`.
package enum SyntheticTrace: String, CaseIterable, Sendable {
    /// A site's images and some downloads.
    ///
    /// 300,000 requests, 15 % of them for objects that are requested once; three objects in a
    /// hundred belong to the tail.
    case webMix = "web-mix"
    /// A working set of 20,000 images, with every 500th request for an object of 16 to 64 MiB that
    /// is requested once.
    case largeNewcomers = "large-newcomers"

    private static let requestCount = 300_000
    private static let objectBytesMax = 64 << 20

    /// The generated trace.
    package var trace: EvictionTrace {
        var trace = EvictionTrace(name: rawValue)
        var dice = SplitMix64(seed: self == .webMix ? 11 : 12)
        let ranks = Ranks(
            count: self == .webMix ? 80_000 : 20_000, exponent: self == .webMix ? 0.8 : 0.9)
        for number in 0..<Self.requestCount {
            let isOnce =
                self == .webMix
                ? Double.random(in: 0..<1, using: &dice) < 0.15 : number % 500 == 499
            let key = isOnce ? UInt64(ranks.count + number) : UInt64(ranks.draw(&dice))
            // Sizes have a generator of their own, so that a key has the same size in whatever
            // order keys are drawn.
            var sizeDice = SplitMix64(seed: key)
            trace.append(key: key, size: size(isOnce: isOnce, &sizeDice))
        }
        return trace
    }

    /// Returns the size of an object in bytes; `isOnce` is true if it is requested once.
    private func size(isOnce: Bool, _ dice: inout SplitMix64) -> Int {
        switch self {
        case .webMix:
            let isInTail = Double.random(in: 0..<1, using: &dice) < 0.03
            let bytes =
                isInTail
                ? 150_000 / pow(Double.random(in: 0x1p-40..<1, using: &dice), 1 / 1.1)
                : Self.logNormal(median: 12_000, deviation: 1.5, &dice)
            return Int(min(max(200, bytes), Double(Self.objectBytesMax)))
        case .largeNewcomers:
            guard !isOnce else { return Int.random(in: 16 << 20...64 << 20, using: &dice) }
            let bytes = Self.logNormal(median: 12_000, deviation: 1, &dice)
            return Int(min(max(200, bytes), 256 * 1024))
        }
    }

    /// Draws from the log-normal distribution, using the Box-Muller method.
    private static func logNormal(
        median: Double, deviation: Double, _ dice: inout SplitMix64
    ) -> Double {
        let radius = (-2 * log(Double.random(in: 0x1p-40..<1, using: &dice))).squareRoot()
        let angle = 2 * Double.pi * Double.random(in: 0..<1, using: &dice)
        return median * exp(deviation * radius * cos(angle))
    }

    /// A distribution of ranks in which the n-th has the weight n^-exponent.
    private struct Ranks {
        /// The sum of the weights up to each rank.
        private var sums: [Double] = []

        init(count: Int, exponent: Double) {
            var sum = 0.0
            for rank in 1...count {
                sum += pow(Double(rank), -exponent)
                sums.append(sum)
            }
        }

        var count: Int { sums.count }

        /// Draws a rank, counted from 0.
        func draw(_ dice: inout SplitMix64) -> Int {
            let wanted = Double.random(in: 0..<(sums.last ?? 1), using: &dice)
            return sums.partitionPoint { $0 <= wanted }
        }
    }
}

/// The reason why a trace could not be read.
package enum TraceError: Error, Equatable, CustomStringConvertible {
    /// No file can be opened at this path.
    case unreadable(path: String)
    /// `gzip -dc` rejected the file.
    case notCompressed(path: String)
    /// The line, counted from 1, is not `timestamp,key,size` in decimal.
    case badLine(path: String, line: Int)

    /// A message for the user.
    package var description: String {
        switch self {
        case .unreadable(let path): "cannot read \(path)"
        case .notCompressed(let path): "gzip -dc failed on \(path)"
        case .badLine(let path, let line):
            "\(path), line \(line): not timestamp,key,size in decimal, size below 4 GiB"
        }
    }
}

/// A reader of request traces with one line `timestamp,key,size` per request and no header.
package enum TraceReader {
    /// Reads the file at `path`, through `gzip -dc` if its name ends in `.gz`.
    package static func read(_ path: String) throws(TraceError) -> EvictionTrace {
        let bytes = path.hasSuffix(".gz") ? try inflated(path) : try contents(path)
        let file = path.split(separator: "/").last.map(String.init) ?? path
        let name = file.split(separator: ".").first.map(String.init) ?? file
        var trace = EvictionTrace(name: name)
        var parser = TraceParser(bytes: bytes)
        while let line = parser.next() {
            guard let (key, size) = line else {
                throw TraceError.badLine(path: path, line: parser.lineNumber)
            }
            trace.append(key: key, size: size)
        }
        return trace
    }

    /// Returns the contents of a file.
    private static func contents(_ path: String) throws(TraceError) -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw TraceError.unreadable(path: path)
        }
        return [UInt8](data)
    }

    /// Returns the output of `gzip -dc` for a file.
    private static func inflated(_ path: String) throws(TraceError) -> [UInt8] {
        guard FileManager.default.isReadableFile(atPath: path) else {
            throw TraceError.unreadable(path: path)
        }
        let gzip = Process()
        let output = Pipe()
        gzip.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        gzip.arguments = ["gzip", "-dc", path]
        gzip.standardOutput = output
        do {
            try gzip.run()
        } catch {
            throw TraceError.notCompressed(path: path)
        }
        let data = output.fileHandleForReading.readDataToEndOfFile()
        gzip.waitUntilExit()
        guard gzip.terminationStatus == 0 else { throw TraceError.notCompressed(path: path) }
        return [UInt8](data)
    }
}

/// A parser of a trace's bytes.
private struct TraceParser {
    let bytes: [UInt8]
    private var position = 0
    private(set) var lineNumber = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// Returns the next request; `.some(nil)` if its line is invalid, `nil` at the end.
    mutating func next() -> (key: UInt64, size: Int)?? {
        guard position < bytes.count else { return nil }
        lineNumber += 1
        guard number(endedBy: 0x2C) != nil, let key = number(endedBy: 0x2C),
            let size = number(endedBy: 0x0A), size <= UInt64(UInt32.max)
        else { return .some(nil) }
        return (key, Int(size))
    }

    /// Parses digits up to `end` and skips it; the end of the bytes also ends a line.
    private mutating func number(endedBy end: UInt8) -> UInt64? {
        var value: UInt64 = 0
        let start = position
        while position < bytes.count, bytes[position] &- 0x30 < 10 {
            let (product, tooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflow) = product.addingReportingOverflow(UInt64(bytes[position] - 0x30))
            if tooLarge || overflow { return nil }
            value = sum
            position += 1
        }
        let isEnded = position == bytes.count ? end == 0x0A : bytes[position] == end
        guard position > start, isEnded else { return nil }
        position += 1
        return value
    }
}
