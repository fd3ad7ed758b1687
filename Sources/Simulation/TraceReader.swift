internal import Foundation

/// Why a trace could not be read.
package enum TraceError: Error, Equatable, CustomStringConvertible {
    /// No file can be opened at this path.
    case unreadable(path: String)
    /// `gzip -dc` refused the file.
    case notCompressed(path: String)
    /// The line, counted from 1, is not `timestamp,key,size` in decimal.
    case badLine(path: String, line: Int)

    package var description: String {
        switch self {
        case .unreadable(let path): "cannot read \(path)"
        case .notCompressed(let path): "gzip -dc failed on \(path)"
        case .badLine(let path, let line):
            "\(path), line \(line): not timestamp,key,size in decimal, size below 4 GiB"
        }
    }
}

/// Reads request traces: a line `timestamp,key,size` per request, without a header.
package enum TraceReader {
    /// Reads the file at `path`; one whose name ends in `.gz` is read through `gzip -dc`.
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

    private static func contents(_ path: String) throws(TraceError) -> [UInt8] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw TraceError.unreadable(path: path)
        }
        return [UInt8](data)
    }

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

/// Cuts a trace's bytes into keys and sizes.
private struct TraceParser {
    let bytes: [UInt8]
    private var position = 0
    private(set) var lineNumber = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The next request; `.some(nil)` if its line cannot be read, nil at the end.
    mutating func next() -> (key: UInt64, size: Int)?? {
        guard position < bytes.count else { return nil }
        lineNumber += 1
        guard number(endedBy: 0x2C) != nil, let key = number(endedBy: 0x2C),
            let size = number(endedBy: 0x0A), size <= UInt64(UInt32.max)
        else { return .some(nil) }
        return (key, Int(size))
    }

    /// Digits up to `end`, which is passed; the end of the bytes ends a line too.
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
