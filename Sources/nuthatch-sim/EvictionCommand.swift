import ArgumentParser
import Simulation

/// `nuthatch-sim eviction`: compares the miss ratios of eviction policies.
struct EvictionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "eviction",
        abstract: "Prints object and byte miss ratios of eviction policies on request traces.")

    @Argument(
        help: """
            Trace files: timestamp,key,size per line; .gz is read through gzip. Or the name of a \
            synthetic trace: \(SyntheticTrace.allCases.map(\.rawValue).joined(separator: ", ")).
            """)
    var traces: [String]

    @Option(help: "Cache sizes in percent of the footprint, separated by commas.")
    var percent: String = "1,5,10"

    @Option(help: "Cache sizes in MiB, separated by commas, instead of percent.")
    var mib: String?

    @Option(help: "Shards that nuthatch splits the cache into by hash.")
    var shards: Int = 1

    @Option(
        help: """
            Minimum numbers of segments to divide a disk into, separated by commas; "plan" for \
            what a node does.
            """)
    var segments: String = "plan"

    @Option(name: .customLong("object-limit"), help: "Bytes of the largest object that is stored.")
    var objectBytesMax: Int = 64 << 20

    @Flag(help: "Prints one JSON object per line instead of tables.")
    var json = false

    /// A cache size: percent of the footprint, or MiB.
    private enum Size {
        case percent(Double)
        case mib(Int)

        func bytes(of trace: EvictionTrace) -> Int {
            switch self {
            case .percent(let percent): trace.capacityBytes(percent: percent)
            case .mib(let mib): mib << 20
            }
        }
    }

    /// A row of the table; `segments` is `nil` without a log, or if the plan determines the number.
    private struct Row {
        let kind: EvictionKind
        let segments: Int?
    }

    func validate() throws {
        guard 1...4096 ~= shards else {
            throw ValidationError("--shards must be 1 to 4096, not \(shards)")
        }
        _ = try sizes()
        _ = try segmentCounts()
        guard objectBytesMax > 0 else {
            throw ValidationError("--object-limit must be above 0, not \(objectBytesMax)")
        }
    }

    func run() throws {
        let rows = try EvictionKind.allCases.flatMap { kind in
            kind.isSegmented
                ? try segmentCounts().map { Row(kind: kind, segments: $0) }
                : [Row(kind: kind, segments: nil)]
        }
        for path in traces {
            let trace = try SyntheticTrace(rawValue: path)?.trace ?? TraceReader.read(path)
            let sizes = try sizes()
            if !json { print(header(trace, sizes)) }
            for row in rows {
                let figures = sizes.map { size in
                    trace.replay(
                        row.kind, capacityBytes: size.bytes(of: trace),
                        objectBytesMax: objectBytesMax, shards: shards, segments: row.segments)
                }
                print(json ? lines(trace, row, sizes, figures) : tableRow(row, figures))
            }
        }
    }

    private func segmentCounts() throws -> [Int?] {
        try segments.split(separator: ",").map { word in
            word == "plan"
                ? nil : try numbers(String(word), of: "--segments", in: 4...65_536).first
        }
    }

    private func sizes() throws -> [Size] {
        if let mib {
            return try numbers(mib, of: "--mib", in: 1...1 << 30).map { .mib($0) }
        }
        return try percent.split(separator: ",").map { text in
            guard let value = Double(text), value > 0, value <= 100 else {
                throw ValidationError("--percent must hold numbers above 0 up to 100, not \(text)")
            }
            return .percent(value)
        }
    }

    private func header(_ trace: EvictionTrace, _ sizes: [Size]) -> String {
        let requests = trace.requests.count
        return """
            \(trace.name): \(requests) requests, \(trace.sizes.count) keys, \
            \(trace.footprintBytes) bytes \
            (object / byte miss ratio; for a disk × bytes written per byte admitted)
            \("policy".padded(to: 18))\
            \(sizes.map { text($0).padded(to: 26) }.joined())
            """
    }

    private func tableRow(_ row: Row, _ figures: [ReplayStatistics]) -> String {
        let cells = figures.map { figures in
            let written =
                row.kind.isSegmented ? " × \(ratio(figures.writeAmplification))" : ""
            let missed = "\(ratio(figures.objectMissRatio)) / \(ratio(figures.byteMissRatio))"
            return (missed + written).padded(to: 26)
        }
        let name = row.kind.rawValue + (row.segments.map { "/\($0)" } ?? "")
        return name.padded(to: 18) + cells.joined()
    }

    private func lines(
        _ trace: EvictionTrace, _ row: Row, _ sizes: [Size], _ figures: [ReplayStatistics]
    ) -> String {
        zip(sizes, figures).map { size, figures in
            """
            {"trace":"\(trace.name)","policy":"\(row.kind.rawValue)",\
            "size":"\(text(size))","capacity_bytes":\(size.bytes(of: trace)),\
            "shards":\(row.kind == .nuthatch || row.kind == .nuthatchBoth ? shards : 1),\
            "segments":\(row.segments ?? 0),"requests":\(figures.requests),\
            "misses":\(figures.misses),"requested_bytes":\(figures.requestedBytes),\
            "missed_bytes":\(figures.missedBytes),"memory_misses":\(figures.memoryMisses),\
            "admitted_bytes":\(figures.admittedBytes),"written_bytes":\(figures.writtenBytes),\
            "object_miss_ratio":\(ratio(figures.objectMissRatio)),\
            "byte_miss_ratio":\(ratio(figures.byteMissRatio))}
            """
        }.joined(separator: "\n")
    }

    private func ratio(_ value: Double) -> String { fixed(value, decimals: 4) }

    private func text(_ size: Size) -> String {
        switch size {
        case .percent(let percent):
            percent == percent.rounded() ? "\(Int(percent)) %" : "\(percent) %"
        case .mib(let mib): "\(mib) MiB"
        }
    }
}
