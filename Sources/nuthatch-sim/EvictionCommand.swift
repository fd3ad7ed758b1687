import ArgumentParser
import Simulation

/// `nuthatch-sim eviction`: miss ratios of eviction policies beside each other.
struct EvictionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "eviction",
        abstract: "Prints object and byte miss ratios of eviction policies on request traces.")

    @Argument(help: "Trace files: timestamp,key,size a line; .gz is read through gzip.")
    var traces: [String]

    @Option(help: "Cache sizes in per cent of the footprint, separated by commas.")
    var percent: String = "1,5,10"

    @Option(help: "Shards that nuthatch splits the cache into by hash.")
    var shards: Int = 1

    @Option(help: "Least numbers of segments that a disk is cut into, separated by commas.")
    var segments: String = "16,64"

    @Flag(help: "One JSON object a line instead of tables.")
    var json = false

    /// One row of the table; `segments` is nil where there is no log.
    private struct Row {
        let kind: EvictionKind
        let segments: Int?
    }

    func validate() throws {
        guard 1...4096 ~= shards else {
            throw ValidationError("--shards must be 1 to 4096, not \(shards)")
        }
        _ = try percents()
        _ = try segmentCounts()
    }

    func run() throws {
        let rows = try EvictionKind.allCases.flatMap { kind in
            kind.isSegmented
                ? try segmentCounts().map { Row(kind: kind, segments: $0) }
                : [Row(kind: kind, segments: nil)]
        }
        for path in traces {
            let trace = try TraceReader.read(path)
            let percents = try percents()
            if !json { print(header(trace, percents)) }
            for row in rows {
                let figures = percents.map { percent in
                    trace.replay(
                        row.kind, capacityBytes: trace.capacityBytes(percent: percent),
                        shards: shards, segments: row.segments ?? 0)
                }
                print(json ? lines(trace, row, percents, figures) : tableRow(row, figures))
            }
        }
    }

    private func segmentCounts() throws -> [Int] {
        try numbers(segments, of: "--segments", in: 4...65_536)
    }

    private func percents() throws -> [Double] {
        try percent.split(separator: ",").map { text in
            guard let value = Double(text), value > 0, value <= 100 else {
                throw ValidationError("--percent must hold numbers above 0 up to 100, not \(text)")
            }
            return value
        }
    }

    private func header(_ trace: EvictionTrace, _ percents: [Double]) -> String {
        let requests = trace.requests.count
        return """
            \(trace.name): \(requests) requests, \(trace.sizes.count) keys, \
            \(trace.footprintBytes) bytes \
            (object / byte miss ratio; for a disk × bytes written per byte admitted)
            \(padded("policy", to: 18))\
            \(percents.map { padded("\(short($0)) %", to: 26) }.joined())
            """
    }

    private func tableRow(_ row: Row, _ figures: [EvictionFigures]) -> String {
        let cells = figures.map { figures in
            let written = row.segments == nil ? "" : " × \(ratio(figures.writeAmplification))"
            return padded(
                "\(ratio(figures.objectMissRatio)) / \(ratio(figures.byteMissRatio))\(written)",
                to: 26)
        }
        let name = row.kind.rawValue + (row.segments.map { "/\($0)" } ?? "")
        return padded(name, to: 18) + cells.joined()
    }

    private func lines(
        _ trace: EvictionTrace, _ row: Row, _ percents: [Double], _ figures: [EvictionFigures]
    ) -> String {
        zip(percents, figures).map { percent, figures in
            """
            {"trace":"\(trace.name)","policy":"\(row.kind.rawValue)","percent":\(short(percent)),\
            "shards":\(row.kind == .nuthatch || row.kind == .nuthatchBoth ? shards : 1),\
            "segments":\(row.segments ?? 0),"requests":\(figures.requests),\
            "misses":\(figures.misses),"requested_bytes":\(figures.requestedBytes),\
            "missed_bytes":\(figures.missedBytes),\
            "admitted_bytes":\(figures.admittedBytes),"written_bytes":\(figures.writtenBytes),\
            "object_miss_ratio":\(ratio(figures.objectMissRatio)),\
            "byte_miss_ratio":\(ratio(figures.byteMissRatio))}
            """
        }.joined(separator: "\n")
    }

    /// Four digits after the point.
    private func ratio(_ value: Double) -> String {
        let scaled = Int((value * 10_000).rounded())
        let digits = String(scaled % 10_000)
        return "\(scaled / 10_000)." + String(repeating: "0", count: 4 - digits.count) + digits
    }

    private func short(_ percent: Double) -> String {
        percent == percent.rounded() ? String(Int(percent)) : String(percent)
    }

    private func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
